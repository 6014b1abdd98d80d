//===- ImportSource.cpp - model file and tokenizer, read and checked ------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/ImportSource.h"
#include "compiler/artifact/TokenizerTable.h"
#include "compiler/driver/Pooling.h"
#include "compiler/ir/Llm.h"
#include "frontends/common/ImportError.h"
#include "frontends/common/Vocabulary.h"
#include "frontends/gguf/ImportGguf.h"
#include "frontends/onnx/ImportOnnx.h"
#include "frontends/onnx/ModelReader.h"
#include "frontends/onnx/lower/ImportGraph.h"
#include "frontends/tokenizer/LoadTokenizer.h"
#include "mlir/IR/Verifier.h"
#include "runtime/text/PreTokenizer.h"
#include "runtime/text/Tokenizer.h"
#include "runtime/text/jinja/Template.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llmc;

static llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

static std::string knownPreTokenizerNames() {
  std::string names;
  for (const rt::PreTokenizer &pre : rt::knownPreTokenizers())
    names += (names.empty() ? "" : ", ") + std::string(pre.name);
  return names;
}

/// SentencePiece vocabularies read what they have no token for as unknown.
static bool lacksNewline(const TokenizerData &tokenizer) {
  return tokenizer.kind == TokenizerData::Kind::Spm &&
         !llvm::is_contained(tokenizer.tokens, "<0x0A>") &&
         !llvm::is_contained(tokenizer.tokens, "\n");
}

namespace {
class Importer {
public:
  Importer(const CompileOptions &options, llvm::ArrayRef<std::string> folders,
           mlir::MLIRContext &context, SayFn say)
      : options(options), folders(folders), context(context), say(say) {}

  llvm::Error run() {
    // A folder or a tokenizer.json gives a vocabulary only.
    bool tokenizerOnly = llvm::sys::path::filename(options.input) == "tokenizer.json" ||
                         llvm::sys::fs::is_directory(options.input);
    if (!tokenizerOnly)
      if (llvm::Error error = importModel())
        return error;
    if (llvm::StringRef folder = tokenizerPlace(tokenizerOnly); !folder.empty())
      if (llvm::Error error = useTokenizer(folder))
        return error;
    if (llvm::Error error = matchVocabulary())
      return error;
    if (llvm::Error error = checkText())
      return error;
    if (source.model.module && failed(mlir::verify(*source.model.module)))
      return makeError(options.input + ": the imported model is not valid");
    return llvm::Error::success();
  }

  ImportedSource take() { return std::move(source); }

private:
  /// The frontend of the file's format.
  llvm::Expected<ImportedModel> importFile() {
    return onnx::isOnnxFile(options.input) ? importOnnxFile() : importGgufFile(options.input);
  }

  llvm::Expected<ImportedModel> importGgufFile(llvm::StringRef path) {
    GgufImportOptions import;
    if (!options.preTokenizer.empty())
      import.preOverride = options.preTokenizer;
    import.findPre = [](llvm::StringRef name) -> std::optional<PreTokenizerDefaults> {
      const rt::PreTokenizer *pre = rt::findPreTokenizer({name.data(), name.size()});
      if (!pre)
        return std::nullopt;
      return PreTokenizerDefaults{pre->ignoreMerges, pre->addBos};
    };
    import.knownPreList = knownPreTokenizerNames();
    import.context = options.context;
    return importGguf(path, context, import);
  }

  /// A language model, or else a graph of tensors.
  llvm::Expected<ImportedModel> importOnnxFile() {
    std::string notRaised;
    if (options.shapes.empty() && options.constants.empty()) {
      llvm::Expected<ImportedModel> raised = importOnnx(options.input, context);
      if (raised)
        return raised;
      llvm::Error other = llvm::handleErrors(
          raised.takeError(), [&](std::unique_ptr<ImportError> error) -> llvm::Error {
            if (error->getKind() != ImportError::Kind::Unsupported)
              return llvm::Error(std::move(error));
            notRaised = error->getMessage().str();
            return llvm::Error::success();
          });
      if (other)
        return other;
    }
    llvm::Expected<ImportedModel> graph =
        importOnnxGraph(options.input, context, {options.shapes, options.constants});
    if (graph || notRaised.empty()) {
      source.whyGraph = std::move(notRaised);
      return graph;
    }
    std::string message = llvm::toString(graph.takeError());
    return makeError(message == notRaised ? message
                                          : notRaised + "; as a graph of tensors: " + message);
  }

  /// Where the tokenizer is, if it is not in the model: as asked for, or beside an ONNX file.
  llvm::StringRef tokenizerPlace(bool tokenizerOnly) {
    if (!options.tokenizer.empty())
      return options.tokenizer;
    if (tokenizerOnly)
      return options.input;
    if (source.model.tokenizer.kind != TokenizerData::Kind::None ||
        !onnx::isOnnxFile(options.input))
      return "";
    for (const std::string &folder : folders)
      if (hasTokenizer(folder))
        return folder;
    return "";
  }

  llvm::Error importModel() {
    llvm::Expected<ImportedModel> imported = importFile();
    if (!imported)
      return imported.takeError();
    source.model = std::move(*imported);
    return llvm::Error::success();
  }

  /// Takes the tokenizer and the chat template of a folder, or of a GGUF file, in place of the
  /// model's own.
  llvm::Error useTokenizer(llvm::StringRef folder) {
    if (llvm::sys::path::extension(folder) == ".gguf") {
      llvm::Expected<ImportedModel> other = importGgufFile(folder);
      if (!other)
        return other.takeError();
      if (other->tokenizer.kind == TokenizerData::Kind::None)
        return makeError(folder + ": has no tokenizer to use");
      source.model.tokenizer = std::move(other->tokenizer);
      source.model.chatTemplate = std::move(other->chatTemplate);
      return llvm::Error::success();
    }
    llvm::Expected<LoadedTokenizer> loaded = loadTokenizer(folder);
    if (!loaded)
      return loaded.takeError();
    source.model.tokenizer = std::move(loaded->tokenizer);
    source.model.chatTemplate = std::move(loaded->chatTemplate);
    llvm::append_range(source.model.properties, loaded->properties);
    return llvm::Error::success();
  }

  /// A model has at least a row for every token; rows that no token has are never sampled.
  llvm::Error matchVocabulary() {
    auto tokens = int64_t(source.model.tokenizer.tokens.size());
    if (!source.model.module || !source.model.module->lookupSymbol(llm::kForwardName) ||
        source.model.tokenizer.kind == TokenizerData::Kind::None)
      return llvm::Error::success();
    int64_t rows = vocabularyOf(*source.model.module);
    if (isEncoder(*source.model.module) && tokens <= rows)
      return llvm::Error::success();
    if (tokens > rows)
      return makeError(options.input + ": the tokenizer has " + llvm::Twine(tokens) +
                       " tokens, the model " + llvm::Twine(rows));
    if (tokens < rows && dropPaddedLogits(*source.model.module, tokens))
      say("note",
          llvm::Twine(rows - tokens) + " rows of the head belong to no token and are left out");
    return llvm::Error::success();
  }

  /// What the runtime could not tokenize or render is refused now, not at the first request.
  llvm::Error checkText() {
    if (lacksNewline(source.model.tokenizer))
      say("warning",
          "the vocabulary has no token for a newline, which is read as the unknown token");
    llvm::StringRef place = options.tokenizer.empty() ? options.input : options.tokenizer;
    if (source.model.tokenizer.pipeline) {
      flatbuffers::FlatBufferBuilder fbb;
      fbb.Finish(buildTokenizer(fbb, source.model.tokenizer));
      auto made =
          rt::Tokenizer::create(flatbuffers::GetRoot<fb::Tokenizer>(fbb.GetBufferPointer()));
      if (!made.ok())
        return makeError(place + ": " + made.status().message());
    }
    if (!source.model.chatTemplate.empty()) {
      auto parsed = rt::jinja::Template::parse(source.model.chatTemplate, "chat template",
                                               rt::jinja::kChatTemplate);
      if (!parsed.ok())
        return makeError(place + ": " + parsed.status().message());
    }
    return llvm::Error::success();
  }

  const CompileOptions &options;
  llvm::ArrayRef<std::string> folders;
  mlir::MLIRContext &context;
  SayFn say;
  ImportedSource source;
};
} // namespace

llvm::Expected<ImportedSource> llmc::importSource(const CompileOptions &options,
                                                  llvm::ArrayRef<std::string> folders,
                                                  mlir::MLIRContext &context, SayFn say) {
  Importer importer(options, folders, context, say);
  if (llvm::Error error = importer.run())
    return std::move(error);
  return importer.take();
}
