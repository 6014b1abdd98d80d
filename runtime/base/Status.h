//===- Status.h - must-check results of the runtime -----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every runtime function that can fail returns a Status or a StatusOr<T>. The
// runtime never throws, exits or prints: the caller decides. A message is one
// line, lower case, without a full stop, and names the file, the place and the
// remedy.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_BASE_STATUS_H
#define LLMC_RUNTIME_BASE_STATUS_H

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace llmc::rt {

enum class StatusCode : int {
  Ok = 0,
  InvalidArgument, ///< the caller asked for something that makes no sense
  NotFound,        ///< a file, a symbol or a token that should be there is not
  Corrupt,         ///< damaged or hostile input
  Unsupported,     ///< well-formed, but not something this build can do
  OutOfRange,      ///< a limit (context length, vocabulary) is exceeded
  ResourceExhausted,
  Internal,
};

/// Success, or a code with a one-line message. One pointer wide; success costs no allocation.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(StatusCode code, std::string message)
      : rep(std::make_unique<Rep>(Rep{code, std::move(message)})) {}

  bool ok() const { return !rep; }
  StatusCode code() const { return rep ? rep->code : StatusCode::Ok; }
  const std::string &message() const {
    static const std::string none;
    return rep ? rep->message : none;
  }

private:
  struct Rep {
    StatusCode code;
    std::string message;
  };
  std::unique_ptr<Rep> rep;
};

inline Status invalidArgument(std::string m) { return {StatusCode::InvalidArgument, std::move(m)}; }
inline Status notFound(std::string m) { return {StatusCode::NotFound, std::move(m)}; }
inline Status corrupt(std::string m) { return {StatusCode::Corrupt, std::move(m)}; }
inline Status unsupported(std::string m) { return {StatusCode::Unsupported, std::move(m)}; }
inline Status outOfRange(std::string m) { return {StatusCode::OutOfRange, std::move(m)}; }
inline Status internalError(std::string m) { return {StatusCode::Internal, std::move(m)}; }

/// A value or the Status that says why there is none.
template <typename T> class [[nodiscard]] StatusOr {
public:
  StatusOr(Status status) : state(std::move(status)) {}
  StatusOr(T value) : held(std::move(value)) {}

  bool ok() const { return held.has_value(); }
  Status takeStatus() { return std::move(state); }
  const Status &status() const { return state; }
  T &value() { return *held; }
  const T &value() const { return *held; }
  T take() { return std::move(*held); }

private:
  Status state;
  std::optional<T> held;
};

#define LLMC_CONCAT_IMPL(a, b) a##b
#define LLMC_CONCAT(a, b) LLMC_CONCAT_IMPL(a, b)
#define LLMC_RETURN_IF_ERROR(expr)                                                                 \
  do {                                                                                             \
    if (::llmc::rt::Status llmcStatus = (expr); !llmcStatus.ok())                                  \
      return llmcStatus;                                                                           \
  } while (false)
#define LLMC_ASSIGN_OR_RETURN(decl, expr)                                                          \
  LLMC_ASSIGN_OR_RETURN_IMPL(LLMC_CONCAT(llmcOr, __LINE__), decl, expr)
#define LLMC_ASSIGN_OR_RETURN_IMPL(tmp, decl, expr)                                                \
  auto tmp = (expr);                                                                               \
  if (!tmp.ok())                                                                                   \
    return tmp.takeStatus();                                                                       \
  decl = tmp.take()

} // namespace llmc::rt

#endif // LLMC_RUNTIME_BASE_STATUS_H
