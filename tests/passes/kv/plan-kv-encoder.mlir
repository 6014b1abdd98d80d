// Where every row sees the whole step, keys and values are used once: they stay as they are, unless
// another encoding is asked for.
// RUN: llmc-opt %s '--llmc-plan-kv=context=64 max-rows=64' | FileCheck %s
// RUN: llmc-opt %s '--llmc-plan-kv=context=64 max-rows=64 encoding=f16' | FileCheck %s --check-prefix=F16

// CHECK: llm.kv @kv {capacity = 256 : i64, encoding = "f32"
// F16: llm.kv @kv {capacity = 256 : i64, encoding = "f16"
llm.kv @kv {heads = 2, head_dim = 16, encoding = "f16"}

func.func @forward(%x: tensor<?xi32>, %pos: tensor<?xi32>) {
  %table = llm.embed %x, @table : (tensor<?xi32>) -> tensor<?x32xf32>
  %a = llm.attention %table, %table, %table, %pos, @kv {heads = 2, scale = 0.25 : f32, bidirectional} : (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<?xi32>) -> tensor<?x32xf32>
  return
}
llm.weight @table [32, 32] "f32" from 0 at 0
