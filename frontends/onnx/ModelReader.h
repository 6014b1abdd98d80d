//===- ModelReader.h - ONNX file -> Graph -----------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An ONNX file is one protobuf message (Wire.h). The fields that matter here:
//
//   ModelProto     1 ir_version, 2 producer_name, 3 producer_version, 7 graph,
//                  8 opset_import, 14 metadata_props, 25 functions
//   OperatorSetId  1 domain, 2 version
//   GraphProto     1 node, 2 name, 5 initializer, 11 input, 12 output,
//                  15 sparse_initializer     (13 value_info is not needed)
//   NodeProto      1 input, 2 output, 3 name, 4 op_type, 5 attribute, 7 domain,
//                  8 overload
//   AttributeProto 1 name, 2 f, 3 i, 4 s, 5 t, 6 g, 7 floats, 8 ints, 9 strings,
//                  20 type, 21 ref_attr_name
//   FunctionProto  1 name, 4 input, 5 output, 6 attribute, 7 node, 9 opset_import,
//                  10 domain, 11 attribute_proto, 13 overload
//   ValueInfo      1 name, 2 type;  TypeProto 1 tensor, 4 sequence, 5 map,
//                  8 sparse, 9 optional;  Tensor 1 elem_type, 2 shape
//   TensorShape    1 dim: 1 dim_value, 2 dim_param
//
// The message is read in place: libonnx's classes would copy every weight inside the
// file, forget where in the file it was, and drop what is newer than they are.
//
// All errors are ImportErrors (frontends/common/ImportError.h).
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_ONNX_MODELREADER_H
#define LLMC_FRONTENDS_ONNX_MODELREADER_H

#include "frontends/onnx/Graph.h"
#include "llvm/Support/Error.h"

namespace llmc::onnx {

/// Reads a file; maps the files with its weights.
llvm::Expected<std::unique_ptr<Model>> readModel(llvm::StringRef path);

/// The same for bytes in memory, which cannot have external data unless `path` is a real one.
llvm::Expected<std::unique_ptr<Model>> readModel(std::unique_ptr<llvm::MemoryBuffer> bytes,
                                                 llvm::StringRef path);

/// True for files that are called .onnx or look like one.
bool isOnnxFile(llvm::StringRef path);

/// True where the bytes can be the beginning of an ONNX file: `ir_version` comes first in files
/// that protobuf wrote, and the other fields of a model are known.
bool looksLikeOnnx(llvm::ArrayRef<uint8_t> beginning);

} // namespace llmc::onnx

#endif // LLMC_FRONTENDS_ONNX_MODELREADER_H
