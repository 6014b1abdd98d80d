//===- ProgramBuilder.cpp - makes one sched program -----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/ProgramBuilder.h"
#include "compiler/weights/PanelLayout.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::sched;
using namespace llmc::schedule;

/// Rows of one prefill attention tile.
static constexpr int64_t kAttendRows = 8;
/// Rows that products may compute together, wanted or not.
static constexpr int64_t kTileRows = 16;
/// Floats before the output in an attention partial (m, l, padding).
static constexpr int64_t kPartialHeader = 16;

FlatSymbolRefAttr KernelSet::intern(Operation *kernel) {
  NamedAttrList attrs(kernel->getAttrDictionary());
  attrs.erase(SymbolTable::getSymbolAttrName());
  Attribute key = attrs.getDictionary(kernel->getContext());
  auto [it, isNew] = known.try_emplace({kernel->getName(), key});
  if (!isNew) {
    kernel->erase();
    return it->second;
  }
  StringRef base = kernel->getName().stripDialect();
  base.consume_back("_kernel");
  std::string name = (base + "_" + llvm::Twine(counts[base]++)).str();
  SymbolTable::setSymbolName(kernel, name);
  return it->second = FlatSymbolRefAttr::get(kernel->getContext(), name);
}

namespace {
class ForwardLowering {
public:
  ForwardLowering(func::FuncOp forward, KernelSet &kernels, const ProgramOptions &options)
      : forward(forward), module(forward->getParentOfType<ModuleOp>()), kernels(kernels),
        options(options), builder(forward.getContext()) {}

  LogicalResult run() {
    builder.setInsertionPointToEnd(module.getBody());
    program = ProgramOp::create(builder, forward.getLoc(), options.name, uint64_t(options.maxRows),
                                IntegerAttr());
    builder.createBlock(&program.getBody());
    for (auto table : module.getOps<llm::RopeTableOp>())
      emitRopeTable(table);
    for (Operation &op : forward.front())
      if (failed(lower(&op)))
        return failure();
    return success();
  }

private:
  // --- small helpers -------------------------------------------------------

  MLIRContext *ctx() { return builder.getContext(); }
  IntegerAttr i64(int64_t value) { return builder.getI64IntegerAttr(value); }
  /// Marks kernels whose arithmetic a target may choose: of prefill, but not in the reference mode.
  UnitAttr prefill() { return unit(!options.few && !options.f32); }
  UnitAttr unit(bool set) { return set ? builder.getUnitAttr() : UnitAttr(); }
  FloatAttr f32(float value) { return builder.getF32FloatAttr(value); }

  llm::WeightOp weight(FlatSymbolRefAttr symbol) {
    return SymbolTable::lookupNearestSymbolFrom<llm::WeightOp>(forward, symbol);
  }
  llm::KvOp kv(FlatSymbolRefAttr symbol) {
    return SymbolTable::lookupNearestSymbolFrom<llm::KvOp>(forward, symbol);
  }

  /// A new buffer of `bytesPerRow` for each row of the step, in blocks of `block` rows.
  FlatSymbolRefAttr buffer(StringRef hint, int64_t bytesPerRow, int64_t block = 1) {
    std::string name = (hint + "." + llvm::Twine(bufferCount++)).str();
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&program.getBody().front());
    BufferOp::create(builder, forward.getLoc(), name,
                     uint64_t(llvm::alignTo(options.maxRows, block) * bytesPerRow), IntegerAttr());
    return FlatSymbolRefAttr::get(ctx(), name);
  }

  BindAttr bind(Access access, BindKind kind, FlatSymbolRefAttr symbol) {
    return BindAttr::get(ctx(), access, kind, symbol);
  }
  BindAttr read(FlatSymbolRefAttr symbol) { return bind(Access::Read, BindKind::Buffer, symbol); }
  BindAttr write(FlatSymbolRefAttr symbol) { return bind(Access::Write, BindKind::Buffer, symbol); }
  BindAttr readWeight(FlatSymbolRefAttr symbol) {
    return bind(Access::Read, BindKind::Weight, symbol);
  }

  void dispatch(Operation *from, StringRef name, FlatSymbolRefAttr kernel, TilesAttr tiles,
                ArrayRef<Attribute> bindings) {
    auto layer = from->getAttrOfType<IntegerAttr>("llm.layer");
    DispatchOp::create(builder, from->getLoc(), kernel, tiles, builder.getArrayAttr(bindings),
                       builder.getStringAttr(name), i64(layer ? layer.getInt() : -1));
  }

  TilesAttr rowTiles(bool outRows = false, int64_t block = 1, int64_t base = 1) {
    return TilesAttr::get(ctx(), base, block, 0, 0, outRows);
  }

  /// The buffer that holds `value`; a value is made before it is read.
  FlatSymbolRefAttr bufferOf(Value value) { return buffers.lookup(value); }

  FlatSymbolRefAttr newResult(Value value, StringRef hint) {
    return buffers[value] = buffer(hint, llm::features(value) * 4);
  }

  /// The buffer for `result`, which may take the place of `old` if that is not needed afterwards.
  FlatSymbolRefAttr resultInPlaceOf(Value old, Value result, StringRef hint) {
    Operation *op = result.getDefiningOp();
    bool last = llvm::all_of(old.getUsers(), [&](Operation *user) {
      return user == op || (user->getBlock() == op->getBlock() && user->isBeforeInBlock(op));
    });
    if (!last || !bufferOf(old) || llm::features(old) != llm::features(result))
      return newResult(result, hint);
    return buffers[result] = bufferOf(old);
  }

  NormSpecAttr normSpec(llm::NormAttr norm) {
    return norm ? NormSpecAttr::get(ctx(), norm.getKind(), bool(norm.getBias()),
                                    f32(norm.getEps().getValueAsDouble()))
                : NormSpecAttr();
  }
  void bindNorm(llm::NormAttr norm, SmallVectorImpl<Attribute> &bindings) {
    if (!norm)
      return;
    bindings.push_back(readWeight(norm.getWeight()));
    if (norm.getBias())
      bindings.push_back(readWeight(norm.getBias()));
  }

  static StringRef hintOf(Operation *op) { return op->getName().stripDialect(); }

  // --- linears -------------------------------------------------------------

  /// Float weights are multiplied with floats. So is what comes out of a norm, where that is asked
  /// for: its features may differ too much in size for one scale per group.
  template <typename Op> ActKind actKind(Op op) {
    ArrayAttr weights = op.getWeights();
    if (options.f32Norms &&
        (op.getNormAttr() || isa_and_present<llm::NormOp>(op.getInput().getDefiningOp())))
      return ActKind::F32;
    for (Attribute symbol : weights) {
      StringRef encoding = weight(cast<FlatSymbolRefAttr>(symbol)).getFinalEncoding();
      if (encoding == "f32" || encoding == "f16" || encoding == "bf16")
        return ActKind::F32;
    }
    return options.f32 ? ActKind::F32 : ActKind::Int8;
  }

  /// A sum that the kernel which reads it makes: x + norm(y), and whether others need it, too.
  struct Sum {
    FlatSymbolRefAttr x, y;
    llm::NormAttr norm;
    FlatSymbolRefAttr kept;
  };

  /// How a linear gets its activations: binds them and says which prologue that is; `sum` where
  /// they are one.
  Prologue bindInput(Operation *op, Value input, llm::NormAttr norm, ActKind act, bool outRows,
                     SmallVectorImpl<Attribute> &bindings, Sum &sum) {
    if (options.few) {
      if (auto known = sums.find(input); known != sums.end() && known->second.first == op) {
        sum = known->second.second;
        bindings.push_back(read(sum.x));
        bindings.push_back(read(sum.y));
        bindNorm(sum.norm, bindings);
        if (sum.kept)
          bindings.push_back(write(sum.kept));
        bindNorm(norm, bindings);
        return Prologue::Norm;
      }
      auto partials = partialsOf.find(input);
      if (!norm && partials != partialsOf.end()) {
        bindings.push_back(read(partials->second));
        return Prologue::Merge;
      }
      bindings.push_back(read(bufferOf(input)));
      bindNorm(norm, bindings);
      return norm ? Prologue::Norm : Prologue::Rows;
    }
    bindings.push_back(read(prepare(op, input, norm, act, outRows)));
    return Prologue::Packed;
  }

  FlatSymbolRefAttr prepare(Operation *op, Value input, llm::NormAttr norm, ActKind act,
                            bool outRows) {
    auto key = std::make_tuple(input, Attribute(norm), int(act) * 2 + outRows);
    if (FlatSymbolRefAttr known = prepared.lookup(key))
      return known;
    int64_t features = llm::features(input);
    FlatSymbolRefAttr out = buffer(
        "act", ukActStride(act == ActKind::Int8 ? ukActInt8 : ukActF32, features), kTileRows);
    FlatSymbolRefAttr kernel =
        kernels.get<PrepareKernelOp>(op->getLoc(), i64(features), ActKindAttr::get(ctx(), act),
                                     normSpec(norm), unit(outRows), prefill());
    SmallVector<Attribute> bindings{read(bufferOf(input))};
    bindNorm(norm, bindings);
    bindings.push_back(write(out));
    dispatch(op, "prepare", kernel, rowTiles(outRows), bindings);
    return prepared[key] = out;
  }

  template <typename Op> ArrayAttr segments(Op op, SmallVectorImpl<Attribute> &bindings) {
    SmallVector<Attribute> list;
    for (unsigned i = 0, e = op.getWeights().size(); i < e; ++i) {
      llm::WeightOp w = weight(op.getWeight(i));
      FlatSymbolRefAttr bias = op.getBias(i);
      list.push_back(SegmentAttr::get(ctx(), w.getRows(), w.getFinalEncoding(), bool(bias)));
      bindings.push_back(readWeight(op.getWeight(i)));
      if (bias)
        bindings.push_back(readWeight(bias));
    }
    return builder.getArrayAttr(list);
  }

  /// What a linear is in a transformer, for profiles.
  static StringRef roleOf(llm::LinearOp op) {
    auto activated = [](llm::LinearOp linear) {
      return linear && (linear.getGated() || linear.getActivation() != llm::Activation::None);
    };
    Value input = op.getInput();
    if (activated(op))
      return "ffn_up";
    if (input.getDefiningOp<llm::AttendOp>())
      return "attn_out";
    bool down = activated(input.getDefiningOp<llm::LinearOp>()) ||
                isa_and_present<llm::GluOp, llm::ActOp>(input.getDefiningOp());
    return down ? "ffn_down" : "linear";
  }

  LogicalResult lowerLinear(llm::LinearOp op) {
    Value input = op.getInput();
    bool logits = isLogits(op);
    bool outRows = false;
    if (auto selected = input.getDefiningOp<llm::OutRowsOp>(); selected && logits) {
      input = selected.getInput();
      outRows = true;
    }
    SmallVector<Attribute> bindings;
    ActKind act = actKind(op);
    Sum sum;
    Prologue prologue = bindInput(op, input, op.getNormAttr(), act, outRows, bindings, sum);
    ArrayAttr segs = segments(op, bindings);
    if (op.getResidual())
      bindings.push_back(read(bufferOf(op.getResidual())));
    if (!logits) {
      for (Value result : op.getResults()) {
        // Every worker reads what it makes the input of.
        FlatSymbolRefAttr old = op.getResidual() ? bufferOf(op.getResidual()) : FlatSymbolRefAttr();
        bool inPlace = old && op.getResidual() != input && old != sum.x && old != sum.y;
        bindings.push_back(write(inPlace ? resultInPlaceOf(op.getResidual(), result, "x")
                                         : newResult(result, "y")));
      }
    }
    llm::AttendOp attend = input.getDefiningOp<llm::AttendOp>();
    bool merge = prologue == Prologue::Merge;
    int64_t panels = 0;
    for (Attribute seg : segs)
      panels += llvm::divideCeil(cast<SegmentAttr>(seg).getRows(), kPanelRows);
    if (op.getGated())
      panels /= 2;
    FlatSymbolRefAttr kernel = kernels.get<LinearKernelOp>(
        op.getLoc(), i64(llm::features(input)), ActKindAttr::get(ctx(), act),
        PrologueAttr::get(ctx(), prologue),
        prologue == Prologue::Norm ? normSpec(op.getNormAttr()) : NormSpecAttr(), segs,
        op.getGatedAttr(), op.getActivationAttr(), op.getScaleAttr(), op.getSoftcapAttr(),
        unit(bool(op.getResidual())), unit(outRows), unit(logits), i64(options.familyRows),
        i64(merge ? attend.getHeads() : 0), i64(merge ? kv(attend.getKvAttr()).getWindow() : 0),
        i64(merge ? maxChunks(kv(attend.getKvAttr())) : 0), prefill(), normSpec(sum.norm),
        unit(bool(sum.kept)));
    dispatch(op, logits ? "logits" : roleOf(op), kernel,
             TilesAttr::get(ctx(), panels, 0, 0, 0, outRows), bindings);
    return success();
  }

  LogicalResult lowerQkv(llm::QkvOp op) {
    llm::KvOp cache = kv(op.getKvAttr());
    if (!cache.getCapacity())
      return op.emitError("cache ") << op.getKvAttr() << " has no plan; run llmc-plan-kv first";
    SmallVector<Attribute> bindings;
    ActKind act = actKind(op);
    Sum sum;
    Prologue prologue = bindInput(op, op.getInput(), op.getNormAttr(), act, false, bindings, sum);
    ArrayAttr segs = segments(op, bindings);
    bindNorm(op.getQNormAttr(), bindings);
    bindNorm(op.getKNormAttr(), bindings);
    int64_t pairs = 0;
    auto kind = llm::RopeKind::HalfSplit;
    if (op.getRopeAttr()) {
      auto table = SymbolTable::lookupNearestSymbolFrom<llm::RopeTableOp>(op, op.getRopeAttr());
      pairs = table.getInvFreq().size();
      kind = table.getKind();
      bindings.push_back(read(ropeRows.lookup(table.getSymNameAttr())));
    }
    bindings.push_back(write(newResult(op.getQuery(), "q")));
    bindings.push_back(bind(Access::Write, BindKind::Key, op.getKvAttr()));
    bindings.push_back(bind(Access::Write, BindKind::Value, op.getKvAttr()));
    FlatSymbolRefAttr kernel = kernels.get<QkvKernelOp>(
        op.getLoc(), i64(llm::features(op.getInput())), ActKindAttr::get(ctx(), act),
        PrologueAttr::get(ctx(), prologue),
        prologue == Prologue::Norm ? normSpec(op.getNormAttr()) : NormSpecAttr(), segs,
        op.getHeadsAttr(), i64(cache.getHeads()), i64(cache.getHeadDim()),
        normSpec(op.getQNormAttr()), normSpec(op.getKNormAttr()), i64(pairs),
        llm::RopeKindAttr::get(ctx(), kind), cache.getEncodingAttr(), cache.getCapacityAttr(),
        i64(options.familyRows), prefill(), normSpec(sum.norm), unit(bool(sum.kept)));
    int64_t tiles = op.getHeads() + 2 * cache.getHeads();
    dispatch(op, "qkv", kernel, TilesAttr::get(ctx(), tiles, 0, 0, 0, false), bindings);
    return success();
  }

  // --- attention -----------------------------------------------------------

  /// Chunks that a step may see: of the cache, and one more where a step straddles a border.
  int64_t maxChunks(llm::KvOp cache) { return *cache.getCapacity() / kKvChunk + 1; }

  LogicalResult lowerAttend(llm::AttendOp op) {
    llm::KvOp cache = kv(op.getKvAttr());
    if (!cache.getCapacity())
      return op.emitError("cache ") << op.getKvAttr() << " has no plan; run llmc-plan-kv first";
    auto reader =
        op->hasOneUse() ? dyn_cast<llm::LinearOp>(*op->getUsers().begin()) : llm::LinearOp();
    // Who merges partials looks no further than its own position.
    bool split = options.few && !op.getBidirectional() && reader &&
                 reader.getInput() == op.getResult() && !reader.getNormAttr() &&
                 reader.getResidual() != op.getResult();
    FlatSymbolRefAttr out;
    if (split) {
      int64_t partial = 4 * (kPartialHeader + cache.getHeadDim());
      out = partialsOf[op.getResult()] =
          buffer("partials", op.getHeads() * maxChunks(cache) * partial);
    } else {
      out = newResult(op.getResult(), "a");
    }
    FlatSymbolRefAttr kernel = kernels.get<AttendKernelOp>(
        op.getLoc(), op.getHeadsAttr(), i64(cache.getHeads()), i64(cache.getHeadDim()),
        op.getScaleAttr(), op.getSoftcapAttr(), cache.getWindowAttr(), cache.getCapacityAttr(),
        cache.getEncodingAttr(), unit(split), i64(split ? 0 : kAttendRows), i64(maxChunks(cache)),
        op.getBidirectionalAttr());
    TilesAttr tiles =
        split ? TilesAttr::get(ctx(), cache.getHeads(), 0, kKvChunk, cache.getWindow(), false)
              : TilesAttr::get(ctx(), cache.getHeads(), kAttendRows, 0, 0, false);
    dispatch(op, "attention", kernel, tiles,
             {read(bufferOf(op.getQuery())), bind(Access::Read, BindKind::Key, op.getKvAttr()),
              bind(Access::Read, BindKind::Value, op.getKvAttr()), write(out)});
    return success();
  }

  // --- row-wise ops --------------------------------------------------------

  struct RowParams {
    int64_t groups = 1;
    llm::NormAttr norm;
    llm::Activation activation = llm::Activation::None;
    float factor = 1;
    llm::RopeTableOp rope;
    llm::KvOp cache;
    bool outRows = false;
  };

  void emitRow(Operation *op, RowFn fn, int64_t features, RowParams p,
               ArrayRef<Attribute> bindings) {
    FlatSymbolRefAttr kernel = kernels.get<RowKernelOp>(
        op->getLoc(), RowFnAttr::get(ctx(), fn), i64(features), i64(p.groups), normSpec(p.norm),
        llm::ActivationAttr::get(ctx(), p.activation), f32(p.factor),
        i64(p.rope ? p.rope.getInvFreq().size() : 0),
        llm::RopeKindAttr::get(ctx(), p.rope ? p.rope.getKind() : llm::RopeKind::HalfSplit),
        builder.getStringAttr(p.cache ? p.cache.getEncoding() : "f16"),
        i64(p.cache ? *p.cache.getCapacity() : 0), unit(p.outRows));
    dispatch(op, stringifyRowFn(fn), kernel, rowTiles(p.outRows), bindings);
  }

  /// A row-wise op with float operands and one result of the first operand's type.
  void lowerRow(Operation *op, RowFn fn, RowParams p) {
    SmallVector<Attribute> bindings;
    for (Value operand : op->getOperands())
      if (FlatSymbolRefAttr symbol = bufferOf(operand))
        bindings.push_back(read(symbol));
    bindNorm(p.norm, bindings);
    if (p.rope)
      bindings.push_back(read(ropeRows.lookup(p.rope.getSymNameAttr())));
    bindings.push_back(write(newResult(op->getResult(0), hintOf(op))));
    emitRow(op, fn, llm::features(op->getResult(0)), p, bindings);
  }

  /// The norm of a whole row whose only use is to be added at once: x + norm(y). An op between the
  /// two might take the place of y.
  static llm::NormOp addedNorm(llm::AddOp add) {
    auto norm = add.getRhs().getDefiningOp<llm::NormOp>();
    bool fits = norm && norm.getGroups() == 1 && norm->hasOneUse() && norm->getNextNode() == add &&
                add.getScale().convertToFloat() == 1.0f && add.getLhs() != add.getRhs();
    return fits ? norm : llm::NormOp();
  }

  /// The linear or qkv that comes next and normalizes the sum: with few rows its workers make the
  /// sum, too, which is cheaper than a barrier.
  static Operation *sumReader(llm::AddOp add) {
    Operation *next = add->getNextNode();
    Value sum = add;
    if (auto selected = dyn_cast_if_present<llm::OutRowsOp>(next);
        selected && selected.getInput() == sum && selected->hasOneUse()) {
      auto head = dyn_cast<llm::LinearOp>(*selected->getUsers().begin());
      bool reads = head && head == selected->getNextNode() && isLogits(head) && add->hasOneUse();
      return reads && head.getNormAttr() ? head : nullptr;
    }
    if (auto linear = dyn_cast_if_present<llm::LinearOp>(next))
      return linear.getInput() == sum && linear.getNormAttr() && linear.getResidual() != sum
                 ? next
                 : nullptr;
    auto qkv = dyn_cast_if_present<llm::QkvOp>(next);
    return qkv && qkv.getInput() == sum && qkv.getNormAttr() ? next : nullptr;
  }

  void lowerAdd(llm::AddOp op) {
    RowParams p;
    p.factor = op.getScale().convertToFloat();
    if (llm::NormOp norm = addedNorm(op)) {
      if (Operation *reader = options.few ? sumReader(op) : nullptr) {
        Sum sum{bufferOf(op.getLhs()), bufferOf(norm.getInput()), norm.getNorm(), {}};
        // Others still read x while the sum is written.
        if (!op->hasOneUse())
          sum.kept = newResult(op, "x");
        sums[op] = {reader, sum};
        return;
      }
      p.norm = norm.getNorm();
      SmallVector<Attribute> bindings{read(bufferOf(op.getLhs())), read(bufferOf(norm.getInput()))};
      bindNorm(p.norm, bindings);
      bindings.push_back(write(resultInPlaceOf(op.getLhs(), op, "x")));
      emitRow(op, RowFn::NormAdd, llm::features(op), p, bindings);
      return;
    }
    lowerRow(op, RowFn::Add, p);
  }

  LogicalResult lowerKvAppend(llm::KvAppendOp op) {
    RowParams p;
    p.cache = kv(op.getKvAttr());
    if (!p.cache.getCapacity())
      return op.emitError("cache ") << op.getKvAttr() << " has no plan; run llmc-plan-kv first";
    p.groups = p.cache.getHeads();
    emitRow(op, RowFn::KvAppend, llm::features(op.getKey()), p,
            {read(bufferOf(op.getKey())), read(bufferOf(op.getValue())),
             bind(Access::Write, BindKind::Key, op.getKvAttr()),
             bind(Access::Write, BindKind::Value, op.getKvAttr())});
    return success();
  }

  // --- the rest ------------------------------------------------------------

  void emitRopeTable(llm::RopeTableOp table) {
    int64_t pairs = table.getInvFreq().size();
    FlatSymbolRefAttr out = buffer("rope", 2 * pairs * 4);
    FlatSymbolRefAttr kernel = kernels.get<RopeTableKernelOp>(
        table.getLoc(), table.getInvFreqAttr(), table.getMscaleAttr());
    dispatch(table, "rope_table", kernel, rowTiles(), {write(out)});
    ropeRows[table.getSymNameAttr()] = out;
  }

  void lowerEmbed(llm::EmbedOp op) {
    llm::WeightOp table = weight(op.getWeightAttr());
    bool positions = op.getTokens() == forward.getArgument(1);
    FlatSymbolRefAttr kernel = kernels.get<EmbedKernelOp>(
        op.getLoc(), i64(table.getRows()), i64(table.getColumns()),
        builder.getStringAttr(table.getFinalEncoding()), op.getScaleAttr(), unit(positions));
    FlatSymbolRefAttr out = newResult(op.getResult(), "x");
    dispatch(op, "embed", kernel, rowTiles(), {readWeight(op.getWeightAttr()), write(out)});
  }

  /// A linear that writes the step's logits itself.
  static bool isLogits(llm::LinearOp op) {
    return op->getNumResults() == 1 && !op.getResidual() && op->hasOneUse() &&
           isa<func::ReturnOp>(*op->getUsers().begin());
  }

  LogicalResult lowerReturn(func::ReturnOp op) {
    if (op->getNumOperands() != 1)
      return op.emitError("@forward must return the logits and nothing else");
    Value logits = op.getOperand(0);
    if (auto linear = logits.getDefiningOp<llm::LinearOp>(); linear && isLogits(linear))
      return success();
    RowParams p;
    p.outRows = true;
    emitRow(op, RowFn::Logits, llm::features(logits), p, {read(bufferOf(logits))});
    return success();
  }

  LogicalResult lower(Operation *op) {
    return TypeSwitch<Operation *, LogicalResult>(op)
        .Case([&](llm::EmbedOp op) { return lowerEmbed(op), success(); })
        .Case([&](llm::LinearOp op) { return lowerLinear(op); })
        .Case([&](llm::QkvOp op) { return lowerQkv(op); })
        .Case([&](llm::AttendOp op) { return lowerAttend(op); })
        .Case([&](llm::KvAppendOp op) { return lowerKvAppend(op); })
        .Case([&](llm::OutRowsOp op) {
          // Taken by the head where it can be; otherwise all rows are computed and the logits of
          // the wanted ones are copied.
          buffers[op.getResult()] = bufferOf(op.getInput());
          return success();
        })
        .Case([&](llm::NormOp op) {
          auto add = dyn_cast_if_present<llm::AddOp>(op->getNextNode());
          if (add && addedNorm(add) == op)
            return success();
          RowParams p;
          p.groups = op.getGroups();
          p.norm = op.getNorm();
          return lowerRow(op, RowFn::Norm, p), success();
        })
        .Case([&](llm::AddOp op) { return lowerAdd(op), success(); })
        .Case([&](llm::ActOp op) {
          RowParams p;
          p.activation = op.getActivation();
          return lowerRow(op, RowFn::Act, p), success();
        })
        .Case([&](llm::GluOp op) {
          RowParams p;
          p.activation = op.getActivation();
          return lowerRow(op, RowFn::Glu, p), success();
        })
        .Case([&](llm::ScaleOp op) {
          RowParams p;
          p.factor = op.getFactor().convertToFloat();
          return lowerRow(op, RowFn::Scale, p), success();
        })
        .Case([&](llm::SoftcapOp op) {
          RowParams p;
          p.factor = op.getCap().convertToFloat();
          return lowerRow(op, RowFn::Softcap, p), success();
        })
        .Case([&](llm::RopeOp op) {
          RowParams p;
          p.groups = op.getHeads();
          p.rope = SymbolTable::lookupNearestSymbolFrom<llm::RopeTableOp>(op, op.getTableAttr());
          return lowerRow(op, RowFn::Rope, p), success();
        })
        .Case([&](func::ReturnOp op) { return lowerReturn(op); })
        .Default([&](Operation *op) -> LogicalResult {
          return op->emitError("cannot be scheduled; attention must be split first "
                               "(llmc-split-attention)");
        });
  }

  func::FuncOp forward;
  ModuleOp module;
  KernelSet &kernels;
  const ProgramOptions &options;
  OpBuilder builder;
  ProgramOp program;
  llvm::DenseMap<Value, FlatSymbolRefAttr> buffers;
  llvm::DenseMap<Value, FlatSymbolRefAttr> partialsOf;
  llvm::DenseMap<Value, std::pair<Operation *, Sum>> sums; ///< with who makes it
  llvm::DenseMap<StringAttr, FlatSymbolRefAttr> ropeRows;
  llvm::DenseMap<std::tuple<Value, Attribute, int>, FlatSymbolRefAttr> prepared;
  unsigned bufferCount = 0;
};
} // namespace

LogicalResult schedule::buildProgram(func::FuncOp forward, KernelSet &kernels,
                                     const ProgramOptions &options) {
  return ForwardLowering(forward, kernels, options).run();
}
