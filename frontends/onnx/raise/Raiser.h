//===- Raiser.h - ONNX graph -> llm dialect ---------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One walk over the graph gives every value a *meaning*: rows of the llm dialect in
// some layout, keys or values in a KV cache, attention scores, a function of rows that
// is not named yet, ... A node's meaning follows from its operands' meanings, so that
// forms which differ only in how they reshape, repeat, scale or mask come to the same.
// Names are never looked at. The sections of the walk:
//
//   Raiser.cpp           the walk, moves (reshape, transpose, slice, ...), inputs
//   RaiseEmbedding.cpp   tokens and positions
//   RaiseRows.cpp        linears, norms, sums, activations
//   RaiseAttention.cpp   KV caches, scores, masks, fused attention
//   RaiseQuantized.cpp   products of codes that are made while the model runs
//   RaisePooling.cpp     the rows of a text made one, as sentence encoders do
//   Recognize.cpp        functions of rows: what they are, by running them (Probe.h)
//   WeightRefs.cpp       constants -> llm.weight and recipes
//   Finish.cpp           order, layers and names of the canonical form
//
// A value without a meaning is an error only if the logits need it; the error names the
// node and says why.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_ONNX_RAISE_RAISER_H
#define LLMC_FRONTENDS_ONNX_RAISE_RAISER_H

#include "compiler/ir/Llm.h"
#include "frontends/common/Rope.h"
#include "frontends/onnx/raise/Layout.h"
#include "frontends/onnx/raise/Probe.h"
#include "frontends/onnx/raise/WeightRefs.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include <deque>

namespace llmc::onnx {

/// Rows of the llm dialect: what they are made of, and the op once something needs it. Linears
/// stay open so that a slice of one becomes a linear of some of its rows, and a bias or a scale
/// that follows joins it; norms, so that their weight and bias do; embedded tokens, so that all
/// that is added to them by position becomes one table.
struct Source {
  enum class Kind : uint8_t { Op, Linear, Norm, Shifted } kind = Kind::Op;
  const Value *root = nullptr;      ///< the ONNX value that these rows are
  Layout layout;                    ///< of root
  std::vector<const Value *> views; ///< root, and the same rows in other layouts
  int64_t features = 0;
  mlir::Value op; ///< null: not made yet
  mlir::Location loc;

  Source *input = nullptr; ///< Linear, Norm, Shifted
  WeightRef weight;        ///< Linear, Norm; a norm may have none yet
  std::optional<WeightRef> bias;
  Source *whole = nullptr; ///< the linear that this one is some rows of
  int64_t begin = 0;       ///< first of its rows
  llm::NormKind norm = llm::NormKind::Rms;
  double epsilon = 0;
  int64_t groups = 1;
  /// Shifted: what is added, [positions, features], or one row for all positions.
  std::vector<double> shift;

  explicit Source(mlir::Location loc) : loc(loc) {}
};

/// One attention in the making: softmax(scale q k^T, capped and masked).
struct Scores {
  Source *query = nullptr;
  int64_t heads = 0, headDim = 0;
  int cache = -1;
  double scale = 1;
  /// tanh(scores) has been taken; what the scores are multiplied by afterwards is the cap.
  bool capped = false;
  double cap = 1;
  int64_t window = 0;
  bool causal = false, isProbability = false;
};

/// Keys or values: earlier ones and the step's.
struct Cache {
  const Value *past = nullptr; ///< null: the graph has no past
  Source *rows = nullptr;      ///< the step's; null: not appended here
  int64_t heads = 0, headDim = 0;
};

struct Meaning {
  enum class Kind : uint8_t {
    None,
    Ids,
    Rows,
    Function,
    Past,
    Cache,
    Scores,
    Codes,      ///< rows as codes of 8 bits, in steps of their own
    CodeScale,  ///< what such codes count, perhaps times the scale of a weight
    Product,    ///< of such codes and a weight's: integers
    TokenCodes, ///< rows of an embedding table that has codes
  };
  Kind kind = Kind::None;
  std::string why;          ///< None: what stood in the way
  Source *source = nullptr; ///< Rows, Function; Codes, CodeScale: of what; Product: by what
  std::optional<Layout>
      layout; ///< Rows, Cache, Scores; of a function only where it is that of rows
  // What a function does besides arithmetic on single elements.
  bool reduces = false, mixes = false, positional = false;
  int cache = -1;    ///< Past, Cache
  double factor = 1; ///< Cache: what keys have been multiplied by
  /// CodeScale: of the weight, or null. Product, TokenCodes: the weight's codes, and zero points.
  const Value *scales = nullptr, *codes = nullptr, *zeros = nullptr;
  std::shared_ptr<Scores> scores;
};

/// Of an operator's output [batch, heads, time, dim] that is cache `cache`.
Meaning presentCache(int cache, int64_t heads, int64_t dim);

/// What a graph makes of the rows of a text.
struct Pooling {
  llvm::StringRef kind; ///< "mean", "cls", "last"
  bool normalize = false;
};

/// The result: a module and what its weights refer to.
struct RaisedModel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<SourceFile> extraFiles; ///< constants that are in no file; numbered after the model's
  int64_t vocabulary = 0, layers = 0;
  int64_t context = 0; ///< positions that tables in the graph have; 0: not limited
  bool isEncoder = false;
  std::optional<Pooling> pooling; ///< where an output is pooled
};

class Raiser {
public:
  Raiser(Model &model, mlir::MLIRContext &context);
  llvm::Expected<RaisedModel> run();

private:
  // Raiser.cpp
  llvm::Error findRoles();
  llvm::Error bindShapes();
  void classify();
  void visit(Node &node);
  bool visitMove(Node &node);
  bool visitConcat(Node &node);
  bool visitGeneric(Node &node);
  bool isData(const Value *value) const { return value && data.contains(value); }
  Meaning &meaning(const Value *value) { return meanings[value]; }
  bool fail(Node &node, const llvm::Twine &why);
  llvm::Error blame(const Value *value);
  void copyMeaning(Node &node, const Value *from);

  // RaiseEmbedding.cpp
  bool visitEmbed(Node &node);
  bool visitShift(Node &node, const Value *rows, const Value *added);
  std::optional<std::vector<double>> rowsByPosition(const Value *value, int64_t features);
  std::optional<std::vector<double>> rowsOfStep(const Value *value, int64_t features,
                                                int64_t sequence, int64_t past);
  mlir::Value emitShifted(Source *source);
  bool makeEmbed(Node &node, const Value *out, const WeightRef &table);

  // RaiseQuantized.cpp
  bool visitQuantized(Node &node);
  bool visitCodeProduct(Node &node);

  // RaiseRows.cpp
  bool visitLinear(Node &node);
  bool visitNorm(Node &node);
  bool visitSum(Node &node);
  bool visitProduct(Node &node);
  bool visitSlice(Node &node);
  Source *newSource(Source::Kind kind, const Value *root, int64_t features);
  void setRows(const Value *value, Source *source, Layout layout);
  void makeLinear(Node &node, const Value *out, Source *input, WeightRef weight,
                  std::optional<WeightRef> bias);
  Source *sliceOf(Source *source, int64_t begin, int64_t count, const Value *root,
                  const Layout &layout);
  Source *normOf(const Value *root, Source *input, llm::NormKind kind, double epsilon,
                 int64_t groups, const Layout &layout);
  /// The rows that a value is, in any layout; named where it was a function. Null: it is none.
  Source *rowsOf(const Value *value);
  /// The same, with features in order, as a matrix can be multiplied with.
  Source *matrixOf(const Value *value);
  /// The op of a source.
  mlir::Value emit(Source *source);
  mlir::Value emitLinear(Source *source);
  Source *opSource(const Value *root, mlir::Value op, const Layout &layout);
  mlir::RankedTensorType rowsType(int64_t features);
  /// A constant scalar, or nothing.
  std::optional<double> scalar(const Value *value) const;

  // Recognize.cpp
  /// What a function of one element is: c x, or an activation, or a soft-cap.
  struct ElementFunction {
    enum class Kind : uint8_t { Scale, Activation, Softcap } kind = Kind::Scale;
    llm::Activation activation = llm::Activation::None;
    double number = 1; ///< factor or cap
  };
  std::optional<ElementFunction> elementFunction(const Value *value, Source *source);
  /// Names a function with all features: becomes Rows where it is a norm or a rope.
  void tryNorm(const Value *value);
  void tryRope(const Value *value);
  struct Sampled;
  std::optional<Sampled> sample(Probe &probe, const Value *value, const Meaning &m,
                                llvm::ArrayRef<double> rows);
  std::optional<std::vector<double>> smallConstants(const Value *value, const Value *root);
  double tolerance(const Value *value) const;
  /// Window of a causal mask (0: none); nothing where the value is no such mask. `isCondition`:
  /// true means visible; else it is added to scores.
  std::optional<int64_t> maskWindow(const Value *value, bool isCondition);
  /// True for a mask that hides nothing of a sequence without padding.
  bool hidesNothing(const Value *value, bool isCondition);
  /// Takes a mask into account; false where it is none that is known.
  bool applyMask(Scores &scores, const Value *value, bool isCondition);
  bool checkMask(Probe &probe, const Value *value, bool isCondition, int64_t &window);
  std::optional<RopeTable> ropeOf(const Value *value, Source *source, const Layout &layout,
                                  int64_t headDim);
  Probe &probe(int64_t sequence, int64_t past);

  // RaiseAttention.cpp
  bool visitAppend(Node &node);
  bool visitCacheParts(Node &node);
  bool visitScores(Node &node);
  bool visitScoreArithmetic(Node &node);
  bool visitFusedAttention(Node &node);
  bool visitGroupQuery(Node &node);
  bool visitMultiHead(Node &node); // RaiseMultiHead.cpp
  bool visitExpand(Node &node);
  int cacheOf(const Value *value);
  bool startScores(Node &node, const Value *query, const Value *key, double scale);
  bool finishAttention(Node &node, const Value *out, Scores &scores, int valueCache,
                       const Layout &layout);
  mlir::FlatSymbolRefAttr kvSymbol(int64_t heads, int64_t headDim, int64_t window);
  mlir::FlatSymbolRefAttr ropeSymbol(const RopeTable &table);
  Source *applyRope(Source *source, const RopeTable &table, int64_t heads, const Value *root,
                    const Layout &layout);
  std::optional<RopeTable> tableOf(const Value *cos, const Value *sin, llm::RopeKind kind,
                                   int64_t dims);

  // RaisePooling.cpp
  std::optional<Pooling> poolingOf(const Value *value);

  // Finish.cpp
  llvm::Error checkCaches();
  void order();
  void nameAll(RaisedModel &result);

  Model &model;
  mlir::MLIRContext &context;
  mlir::OpBuilder b, symbols;
  WeightRefs weights;
  Roles roles;
  LayoutSizes sizes;
  llvm::DenseSet<const Value *> data; ///< depends on tokens or caches
  llvm::DenseMap<const Value *, Meaning> meanings;
  std::deque<Source> sources;
  std::vector<Cache> caches;
  std::deque<std::pair<std::pair<int64_t, int64_t>, std::unique_ptr<Probe>>> probes;
  std::vector<std::pair<RopeTable, mlir::FlatSymbolRefAttr>> ropeTables;
  llvm::DenseMap<const Value *, std::optional<int64_t>> masks;
  llvm::MapVector<const Value *, const Value *> appended; ///< past -> present
  mlir::func::FuncOp function;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::Value positions;
  int64_t attentions = 0, causalAttentions = 0, vocabulary = 0;
  int64_t contextLimit = INT64_MAX; ///< positions that stored tables have
};

} // namespace llmc::onnx

#endif // LLMC_FRONTENDS_ONNX_RAISE_RAISER_H
