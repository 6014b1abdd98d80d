//===- Embed.cpp - texts to embeddings ------------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/llmc-run/Embed.h"

#include "runtime/llm/Encoder.h"
#include "tools/llmc-run/Common.h"
#include "tools/llmc-run/Npy.h"
#include "tools/llmc-run/ProfileReport.h"

#include <charconv>
#include <cmath>

using namespace llmc;
using namespace llmc::run;
using namespace llmc::rt;

namespace {

/// So many texts are computed before the first of them is printed.
constexpr size_t kBatch = 256;

/// The lines of a text, without their ends.
std::vector<std::string_view> linesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r'))
      line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// The shortest digits that give the same float again.
void appendRow(std::span<const float> row, std::string &out) {
  out += '[';
  char digits[32];
  for (size_t i = 0; i < row.size(); ++i) {
    out += i ? "," : "";
    // JSON has no other numbers.
    const float value = std::isfinite(row[i]) ? row[i] : 0.0f;
    out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  }
  out += ']';
}

/// What the command embeds.
StatusOr<std::vector<EncoderInput>> readInputs(const Options &options, const Encoder &encoder) {
  std::vector<EncoderInput> inputs;
  if (options.tokens) {
    LLMC_RETURN_IF_ERROR(encoder.check(*options.tokens));
    inputs.push_back({*options.tokens});
    return inputs;
  }
  std::string text;
  if (options.prompt) {
    LLMC_ASSIGN_OR_RETURN(EncoderInput input, encoder.tokenize(*options.prompt));
    inputs.push_back(std::move(input));
    return inputs;
  }
  LLMC_ASSIGN_OR_RETURN(text, readText(options.promptFile));
  const std::vector<std::string_view> lines = linesOf(text);
  if (lines.empty())
    return invalidArgument(options.promptFile + " is empty: it has a text on each line");
  for (size_t i = 0; i < lines.size(); ++i) {
    auto input = encoder.tokenize(lines[i]);
    if (!input.ok())
      return Status(input.status().code(), options.promptFile + ", line " + std::to_string(i + 1) +
                                               ": " + input.status().message());
    inputs.push_back(input.take());
  }
  return inputs;
}

/// Says which texts have lost their end.
void reportTruncated(std::span<const EncoderInput> inputs, uint32_t limit) {
  size_t count = 0;
  for (const EncoderInput &input : inputs)
    count += input.truncated;
  if (count)
    std::fprintf(stderr,
                 "llmc-run: note: %zu of %zu texts are longer than %u tokens and were cut\n", count,
                 inputs.size(), limit);
}

bool printText(const Options &options, const EncoderInput &input, std::span<const float> rows,
               uint32_t width, bool isPooled) {
  std::string numbers = isPooled ? "" : "[";
  for (size_t at = 0; at < rows.size(); at += width) {
    numbers += at ? "," : "";
    appendRow(rows.subspan(at, width), numbers);
  }
  numbers += isPooled ? "" : "]";
  if (!options.json)
    return print(numbers + "\n");
  std::string object = Json{{"tokens", input.tokens}, {"truncated", input.truncated}}.dump();
  object.back() = ',';
  return print(object + "\"embedding\":" + numbers + "}\n");
}

} // namespace

Status llmc::run::embed(const Options &options) {
  LLMC_ASSIGN_OR_RETURN(Loaded loaded, loadModel(options));
  LLMC_ASSIGN_OR_RETURN(std::shared_ptr<WorkerPool> pool, WorkerPool::create(threadsOf(options)));
  LLMC_ASSIGN_OR_RETURN(auto encoder, Encoder::create(loaded.model, std::move(pool),
                                                      {options.session.contextLimit,
                                                       options.truncate, options.session.profile}));
  LLMC_ASSIGN_OR_RETURN(std::vector<EncoderInput> inputs, readInputs(options, *encoder));
  const size_t width = encoder->width();
  const auto rowsOf = [&](const EncoderInput &input) {
    return encoder->isPooled() ? 1 : input.tokens.size();
  };
  size_t total = 0;
  for (const EncoderInput &input : inputs)
    total += rowsOf(input);
  std::optional<NpyWriter> file;
  if (!options.embeddingFile.empty())
    file.emplace(options.embeddingFile, total, width);
  std::vector<float> rows;
  for (size_t begin = 0; begin < inputs.size(); begin += kBatch) {
    const auto batch = std::span(inputs).subspan(begin, std::min(kBatch, inputs.size() - begin));
    size_t count = 0;
    for (const EncoderInput &input : batch)
      count += rowsOf(input);
    rows.resize(count * width);
    LLMC_RETURN_IF_ERROR(encoder->embed(batch, rows.data()));
    if (file && !file->append(rows))
      return file->finish();
    size_t at = 0;
    for (const EncoderInput &input : batch) {
      const size_t size = rowsOf(input) * width;
      if (!file && !printText(options, input, std::span(rows).subspan(at, size), uint32_t(width),
                              encoder->isPooled()))
        return notFound("cannot write to standard output");
      at += size;
    }
  }
  reportTruncated(inputs, encoder->contextLimit());
  if (file)
    LLMC_RETURN_IF_ERROR(file->finish());
  if (!encoder->profile())
    return {};
  const ProgramProfile *profiles[] = {encoder->profile()};
  return reportProfile(*loaded.model, encoder->workers().size(), profiles, options.profileFile);
}
