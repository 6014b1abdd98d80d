// Capacity and place of every layer's cache.
// RUN: llmc-opt %s '--llmc-plan-kv=context=8192 max-rows=512' | FileCheck %s
// RUN: llmc-opt %s '--llmc-plan-kv=context=8192 max-rows=512 encoding=f32' | FileCheck %s --check-prefix=F32
// RUN: llmc-opt %s '--llmc-plan-kv=context=300 max-rows=512' | FileCheck %s --check-prefix=SHORT

// Keys, then values, each 3 * 64 features of 8192 positions in f16: 3145728 bytes.
// CHECK: module attributes {llm.kv_bytes = 7405568 : i64}
// CHECK: llm.kv @full {capacity = 8192 : i64, {{.*}}, k_offset = 0 : i64, v_offset = 3145728 : i64}
// F32: module attributes {llm.kv_bytes = 14802944 : i64}
// F32: llm.kv @full {capacity = 8192 : i64, encoding = "f32", {{.*}}, k_offset = 0 : i64, v_offset = 6291456 : i64}
// Capacities are whole chunks of 256.
// SHORT: llm.kv @full {capacity = 512 : i64
llm.kv @full {heads = 3, head_dim = 64, encoding = "f16"}

// A window of 512 and a step of 512 rows see 1023 positions: four chunks, and one more since the
// first may be partly used.
// CHECK: llm.kv @window {capacity = 1280 : i64, {{.*}}, k_offset = 6291456 : i64, v_offset = 6782976 : i64, window = 512 : i64}
// F32: llm.kv @window {capacity = 1280 : i64, encoding = "f32"
// A window larger than the context keeps the context.
// SHORT: llm.kv @window {capacity = 512 : i64
llm.kv @window {heads = 3, head_dim = 64, encoding = "f16", window = 512}

// Every part begins at a multiple of 4096 bytes: 768 positions of 41 features take 62976.
// CHECK: llm.kv @small {capacity = 768 : i64, {{.*}}, k_offset = 7274496 : i64, v_offset = 7340032 : i64, window = 1 : i64}
llm.kv @small {heads = 1, head_dim = 41, encoding = "f16", window = 1}
