//===- TensorReader.h - TensorProto -> Tensor -------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// TensorProto (fields 1 dims, 2 data_type, 8 name) has its elements in one of
//
//   raw_data (9)         little-endian bytes, used in place
//   external_data (13)   key/value pairs: location, offset, length; used in place
//   float_data (4), double_data (10)    packed: used in place
//   int32_data (5)       one element per number for types of 8 to 32 bits; one byte
//                        per number for packed four- and two-bit types; the bits of
//                        float16, bfloat16 and float8
//   int64_data (7), uint64_data (11; also uint32), string_data (6)
//
// The number of bytes must be what shape and type ask for.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_ONNX_TENSORREADER_H
#define LLMC_FRONTENDS_ONNX_TENSORREADER_H

#include "frontends/onnx/ExternalData.h"
#include "frontends/onnx/Tensor.h"

namespace llmc::onnx {

struct NamedTensor {
  llvm::StringRef name;
  Tensor tensor;
};

/// `message` lies in the bytes of the model's own file, files.front().
llvm::Expected<NamedTensor> readTensor(llvm::ArrayRef<uint8_t> message,
                                       std::vector<SourceFile> &files, ExternalFiles &external);

} // namespace llmc::onnx

#endif // LLMC_FRONTENDS_ONNX_TENSORREADER_H
