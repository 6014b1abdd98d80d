// RUN: not llmc-opt %s '--llmc-plan-kv=context=0' 2>&1 | FileCheck %s --check-prefix=CONTEXT
// RUN: not llmc-opt %s '--llmc-plan-kv=max-rows=-1' 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: not llmc-opt %s '--llmc-plan-kv=encoding=q8_0' 2>&1 | FileCheck %s --check-prefix=ENCODING
// RUN: not llmc-opt %s '--llmc-plan-kv=context=33' 2>&1 | FileCheck %s --check-prefix=POSITIONS
// RUN: not llmc-opt %s '--llmc-plan-kv=context=32 max-rows=16' 2>&1 | FileCheck %s --check-prefix=STEP

// CONTEXT: error: plan-kv needs a positive context and max-rows, has 0 and 512
// ROWS: error: plan-kv needs a positive context and max-rows, has 4096 and -1
// ENCODING: error: KV encoding 'q8_0' is not known; use f16 or f32
// POSITIONS: error: the model knows 32 positions; compile it with --context 32
// STEP: error: a text must fit into one step of 16 rows; compile it with --context 16
llm.kv @kv {heads = 1, head_dim = 64, encoding = "f16"}
llm.weight @places [32, 64] "f32" from 0 at 0
func.func @forward(%ids: tensor<?xi32>, %pos: tensor<?xi32>) -> tensor<?x64xf32> {
  %x = llm.embed %pos, @places : (tensor<?xi32>) -> tensor<?x64xf32>
  %a = llm.attend %x, %pos, @kv {heads = 1, scale = 1.0 : f32, bidirectional} : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %a : tensor<?x64xf32>
}
