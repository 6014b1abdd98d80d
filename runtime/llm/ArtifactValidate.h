//===- ArtifactValidate.h - what the checks of a header share ---*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_LLM_ARTIFACTVALIDATE_H
#define LLMC_RUNTIME_LLM_ARTIFACTVALIDATE_H

#include "runtime/base/Status.h"
#include "runtime/schema/llmc_generated.h"

#include <cstdint>
#include <string>

namespace llmc::rt::validate {

/// "sections[2]" and the like, built only when something is wrong.
inline std::string at(const char *list, size_t index) {
  return std::string(list) + "[" + std::to_string(index) + "]";
}

inline Status require(bool condition, const std::string &where, const char *what) {
  return condition ? Status() : corrupt(where + " " + what);
}

inline bool contains(uint64_t size, uint64_t offset, uint64_t length) {
  return offset <= size && length <= size - offset;
}

inline bool between(uint64_t low, uint64_t value, uint64_t high) {
  return low <= value && value <= high;
}

/// The flatbuffer verifier aligns the length of a vector, not its elements. A vector that is null
/// or empty has none.
template <typename Vector> bool isAligned(const Vector *vector, size_t alignment) {
  return !vector || vector->size() == 0 ||
         reinterpret_cast<uintptr_t>(vector->Data()) % alignment == 0;
}

Status checkSectionIndex(const fb::Artifact &header, uint32_t index, fb::SectionKind kind,
                         const std::string &where);

/// What a variant for a CUDA device has of its own; its programs have passed the common checks.
Status checkCudaVariant(const fb::Variant &variant, const fb::Artifact &header,
                        const std::string &where);

/// Where a program may change devices.
Status checkBoundaries(const fb::Program &program, const std::string &where);

} // namespace llmc::rt::validate

#endif // LLMC_RUNTIME_LLM_ARTIFACTVALIDATE_H
