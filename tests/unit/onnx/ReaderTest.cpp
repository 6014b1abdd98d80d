//===- ReaderTest.cpp - reading, inference and folding --------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/common/ImportError.h"
#include "frontends/onnx/Analysis.h"
#include "frontends/onnx/InspectOnnx.h"
#include "frontends/onnx/ModelReader.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstdlib>

using namespace llmc;
using namespace llmc::onnx;

static std::string fixture(llvm::StringRef name) { return (LLMC_TEST_FIXTURES "/" + name).str(); }

static std::unique_ptr<Model> read(llvm::StringRef name) {
  llvm::Expected<std::unique_ptr<Model>> model = readModel(fixture(name));
  if (!model) {
    ADD_FAILURE() << llvm::toString(model.takeError());
    return nullptr;
  }
  return std::move(*model);
}

static std::string shapeOf(const Model &model, const Value &value) {
  return value.shape ? shapeText(*value.shape, model.symbols) : "?";
}

static Value *find(const Model &model, llvm::StringRef name) {
  for (Value *value : model.graph->initializers)
    if (value->name == name)
      return value;
  for (Node *node : model.graph->nodes)
    for (Value *value : node->outputs)
      if (value->name == name)
        return value;
  return nullptr;
}

static std::vector<std::string> filesIn(const std::string &folder) {
  std::vector<std::string> files;
  std::error_code ec;
  for (llvm::sys::fs::directory_iterator it(folder, ec), end; it != end && !ec; it.increment(ec))
    if (llvm::StringRef(it->path()).ends_with(".onnx"))
      files.push_back(it->path());
  llvm::sort(files);
  return files;
}

TEST(Reader, RefusesDamagedFilesByName) {
  auto text = llvm::MemoryBuffer::getFile(fixture("refused.json"));
  ASSERT_TRUE(bool(text));
  auto expected = llvm::json::parse((*text)->getBuffer());
  ASSERT_TRUE(bool(expected));
  for (const auto &[name, texts] : *expected->getAsObject()) {
    std::string path = fixture("refused/" + name.str() + ".onnx");
    llvm::Expected<std::unique_ptr<Model>> model = readModel(path);
    llvm::Error error = model ? analyze(**model) : model.takeError();
    ASSERT_TRUE(bool(error)) << path;
    std::string message = llvm::toString(std::move(error));
    EXPECT_TRUE(llvm::StringRef(message).starts_with(fixture("refused/"))) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    for (const llvm::json::Value &part : *texts.getAsArray())
      EXPECT_NE(message.find(part.getAsString()->str()), std::string::npos)
          << message << " should have " << part.getAsString()->str();
  }
}

TEST(Reader, KeepsWeightsInTheFile) {
  auto model = read("graphs/initializer-is-input.onnx");
  ASSERT_TRUE(model);
  EXPECT_EQ(model->graph->inputs.size(), 1u);
  const Tensor &w = *find(*model, "w")->constant;
  EXPECT_EQ(w.file, 0);
  const char *start = model->files[0].bytes->getBufferStart();
  EXPECT_EQ(reinterpret_cast<const char *>(w.bytes.data()), start + w.offset);
  EXPECT_EQ(w.doubles(), (std::vector<double>{1, 2, 3, 4}));
}

TEST(Reader, ResolvesVersionsAndDomains) {
  auto model = read("graphs/versions.onnx");
  ASSERT_TRUE(model);
  const Node &node = *model->graph->nodes[0];
  EXPECT_EQ(node.domain, "");
  EXPECT_EQ(node.version, 11);
  ASSERT_FALSE(bool(analyze(*model)));
  EXPECT_EQ(shapeOf(*model, *find(*model, "y")), "[n, 3]");
}

TEST(Reader, InlinesFunctions) {
  auto model = read("folded/function.onnx");
  ASSERT_TRUE(model);
  EXPECT_EQ(model->functions, 2u);
  std::vector<std::string> names;
  for (const Node *node : model->graph->nodes)
    if (!node->name.empty())
      names.push_back(node->name);
  EXPECT_EQ(names, (std::vector<std::string>{"first/twice/add", "first/shift", "second/twice/add",
                                             "second/shift"}));
}

TEST(Reader, GraphsInNodesSeeTheValuesAroundThem) {
  auto model = read("graphs/subgraph.onnx");
  ASSERT_TRUE(model);
  const Node &branch = *model->graph->nodes[0];
  const Attribute *then = branch.find("then_branch");
  ASSERT_TRUE(then && then->graph);
  EXPECT_EQ(then->graph->nodes[0]->inputs[0], model->graph->inputs[0]);
}

TEST(Analysis, ShapeArithmeticDisappears) {
  auto model = read("graphs/shapes.onnx");
  ASSERT_TRUE(model);
  llvm::Error error = analyze(*model);
  ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
  EXPECT_EQ(shapeOf(*model, *find(*model, "y")), "[batch, seq, 3, 4]");
  EXPECT_EQ(shapeOf(*model, *find(*model, "row")), "[seq + past]");
  std::vector<std::string> left;
  for (const Node *node : liveNodes(*model->graph))
    left.push_back(node->op.str());
  EXPECT_EQ(left, (std::vector<std::string>{"Reshape", "Expand", "ConstantOfShape"}));
}

TEST(Analysis, ListsAllUnsupportedOperators) {
  auto model = read("graphs/unsupported.onnx");
  ASSERT_TRUE(model);
  std::string message = llvm::toString(analyze(*model));
  for (llvm::StringRef part : {"3 operators are not supported", "Foo (2 nodes: node 'n/1'",
                               "my.domain.Bar (1 node: node 'n::3'", "Baz (1 node: node 'y'"})
    EXPECT_NE(message.find(part.str()), std::string::npos) << message;
}

/// Every output `y` (or `y0`, `y1`, ...) of the folder's graphs equals `want` (`want0`, ...).
static void checkFolds(const std::string &folder, double tolerance) {
  for (const std::string &path : filesIn(folder)) {
    SCOPED_TRACE(path);
    llvm::Expected<std::unique_ptr<Model>> read = readModel(path);
    llvm::Error error = read ? analyze(**read) : read.takeError();
    if (error) {
      ADD_FAILURE() << llvm::toString(std::move(error));
      continue;
    }
    Model &model = **read;
    for (size_t i = 0; i < model.graph->outputs.size(); ++i) {
      std::string suffix =
          model.graph->outputs.size() == 1 && find(model, "want") ? "" : std::to_string(i);
      const Value *got = model.graph->outputs[i], *want = find(model, "want" + suffix);
      if (!want)
        continue;
      if (!got->constant) {
        ADD_FAILURE() << "output " << i << " is not folded; " << shapeOf(model, *got);
        continue;
      }
      EXPECT_EQ(got->constant->dims, want->constant->dims);
      EXPECT_EQ(elementTypeName(got->constant->type), elementTypeName(want->constant->type));
      if (got->constant->type == ElementType::String) {
        EXPECT_EQ(*got->constant->strings, *want->constant->strings);
        continue;
      }
      std::vector<double> a = got->constant->doubles(), b = want->constant->doubles();
      if (a.size() != b.size())
        continue;
      for (size_t k = 0; k < a.size(); ++k) {
        bool same = a[k] == b[k] || (std::isnan(a[k]) && std::isnan(b[k])) ||
                    std::fabs(a[k] - b[k]) <= tolerance * std::max(1.0, std::fabs(b[k]));
        if (!same) {
          ADD_FAILURE() << "element " << k << " is " << a[k] << ", not " << b[k];
          break;
        }
      }
    }
  }
}

TEST(Fold, ComputesWhatIsConstant) { checkFolds(fixture("folded"), 1e-6); }

/// The same for a folder that a test from outside fills.
TEST(Fold, GivenFolder) {
  const char *folder = std::getenv("LLMC_ONNX_FOLD_DIR");
  if (!folder)
    GTEST_SKIP() << "no LLMC_ONNX_FOLD_DIR";
  checkFolds(folder, 1e-4);
}

TEST(Inspect, SaysWhatIsThere) {
  llvm::Expected<OnnxListing> listing = inspectOnnx(fixture("graphs/shapes.onnx"));
  ASSERT_TRUE(bool(listing));
  EXPECT_EQ(listing->nodes, 24u);
  EXPECT_EQ(listing->remainingNodes, 3u);
  EXPECT_EQ(listing->inputs[1].shape, "[batch, 2, past, 4]");
  EXPECT_EQ(listing->problem, "");
}
