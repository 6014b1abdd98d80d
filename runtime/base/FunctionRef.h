//===- FunctionRef.h - a callable without ownership -------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two words: an object and how to call it. Never allocates, and must not
// outlive the callable it was made from, so it is a parameter, not a member.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_BASE_FUNCTIONREF_H
#define LLMC_RUNTIME_BASE_FUNCTIONREF_H

#include <memory>
#include <type_traits>
#include <utility>

namespace llmc::rt {

template <typename Signature> class FunctionRef;

template <typename Ret, typename... Args> class FunctionRef<Ret(Args...)> {
public:
  template <typename Callable>
    requires(!std::is_same_v<std::remove_cvref_t<Callable>, FunctionRef>)
  FunctionRef(Callable &&callable)
      : object((void *)std::addressof(callable)), // also a function, hence the plain cast
        call([](void *self, Args... args) -> Ret {
          return (*reinterpret_cast<std::remove_reference_t<Callable> *>(self))(
              std::forward<Args>(args)...);
        }) {}

  Ret operator()(Args... args) const { return call(object, std::forward<Args>(args)...); }

private:
  void *object;
  Ret (*call)(void *, Args...);
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_BASE_FUNCTIONREF_H
