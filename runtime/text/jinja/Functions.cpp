//===- Functions.cpp - the global functions of templates ------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/jinja/Builtins.h"
#include "runtime/text/jinja/Objects.h"

#include <algorithm>
#include <ctime>

namespace llmc::rt::jinja {
namespace {

StatusOr<Value> makeCycler(Runtime &runtime, const Value &, Args &args) {
  if (args.positional.empty())
    return raised("at least one item has to be provided");
  return Value::object(runtime.heap.make<CyclerObject>(args.positional.size() * sizeof(Value),
                                                       std::move(args.positional)));
}

StatusOr<Value> makeDict(Runtime &runtime, const Value &, Args &args) {
  std::shared_ptr<Dict> dict = runtime.makeDict();
  LLMC_RETURN_IF_ERROR(fillDict(runtime, *dict, args));
  return Value::dict(std::move(dict));
}

StatusOr<Value> makeJoiner(Runtime &runtime, const Value &, Args &args) {
  return Value::object(
      runtime.heap.make<JoinerObject>(0, args[0] ? *args[0] : runtime.string(", ")));
}

StatusOr<Value> makeNamespace(Runtime &runtime, const Value &, Args &args) {
  std::shared_ptr<Dict> attributes = runtime.makeDict();
  LLMC_RETURN_IF_ERROR(fillDict(runtime, *attributes, args));
  return Value::object(runtime.heap.make<NamespaceObject>(0, std::move(attributes)));
}

StatusOr<Value> raiseException(Runtime &runtime, const Value &, Args &args) {
  LLMC_ASSIGN_OR_RETURN(Value message, runtime.str(*args[0]));
  return raised(std::string(message.str()));
}

StatusOr<Value> makeRange(Runtime &runtime, const Value &, Args &args) {
  constexpr uint64_t longest = 100'000; // as in Jinja's sandbox
  LLMC_ASSIGN_OR_RETURN(int64_t begin, args.integer(0, 0));
  LLMC_ASSIGN_OR_RETURN(int64_t end, args.integer(1, 0));
  LLMC_ASSIGN_OR_RETURN(int64_t step, args.integer(2, 1));
  if (!args[1])
    end = std::exchange(begin, 0);
  if (step == 0)
    return raised("range() arg 3 must not be zero");
  bool up = step > 0;
  uint64_t count = 0;
  if (up ? begin < end : end < begin) {
    uint64_t distance = up ? static_cast<uint64_t>(end) - static_cast<uint64_t>(begin)
                           : static_cast<uint64_t>(begin) - static_cast<uint64_t>(end);
    uint64_t stride = up ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
    count = (distance - 1) / stride + 1;
  }
  if (count > longest)
    return raised("range too big, the largest is " + std::to_string(longest));
  LLMC_RETURN_IF_ERROR(runtime.tick(count));
  std::vector<Value> items;
  for (uint64_t i = 0; i < count; ++i)
    items.push_back(Value::integer(begin + static_cast<int64_t>(i) * step));
  return runtime.list(std::move(items));
}

StatusOr<Value> formatNow(Runtime &runtime, const Value &, Args &args) {
  LLMC_ASSIGN_OR_RETURN(const Text *format, args.text(0));
  if (!format)
    return raised("strftime_now() needs a format");
  std::tm now{};
  if (runtime.options.now) {
    now = *runtime.options.now;
  } else {
    std::time_t seconds = std::time(nullptr);
    localtime_r(&seconds, &now);
  }
  std::string pattern(format->str().substr(0, format->str().find('\0')));
  // A space behind the pattern tells an empty result from one that did not fit.
  pattern += ' ';
  std::string result(pattern.size() * 8 + 256, '\0');
  size_t size = std::strftime(result.data(), result.size(), pattern.c_str(), &now);
  if (size == 0)
    return raised("strftime_now() result is too long");
  return runtime.string(Text(std::string_view(result).substr(0, size - 1), format->overallTrust()));
}

constexpr Builtin table[] = {
    {"cycler", "*", makeCycler},
    {"dict", "*", makeDict},
    {"joiner", "sep?", makeJoiner},
    {"namespace", "*", makeNamespace},
    {"raise_exception", "message", raiseException},
    {"range", "start stop? step?", makeRange},
    {"strftime_now", "format", formatNow},
};

} // namespace

std::span<const Builtin> functions() { return table; }

} // namespace llmc::rt::jinja
