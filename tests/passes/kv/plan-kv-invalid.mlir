// RUN: not llmc-opt %s '--llmc-plan-kv=context=0' 2>&1 | FileCheck %s --check-prefix=CONTEXT
// RUN: not llmc-opt %s '--llmc-plan-kv=max-rows=-1' 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: not llmc-opt %s '--llmc-plan-kv=encoding=q8_0' 2>&1 | FileCheck %s --check-prefix=ENCODING

// CONTEXT: error: plan-kv needs a positive context and max-rows, has 0 and 512
// ROWS: error: plan-kv needs a positive context and max-rows, has 4096 and -1
// ENCODING: error: KV encoding 'q8_0' is not known; use f16 or f32
llm.kv @kv {heads = 1, head_dim = 64, encoding = "f16"}
