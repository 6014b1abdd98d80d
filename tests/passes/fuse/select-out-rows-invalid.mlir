// Rows are not chosen above what other rows need too.
// RUN: llmc-opt %s -split-input-file --llmc-select-out-rows | FileCheck %s

llm.weight @table [32, 16] "q8_0" from 0 at 0

// A residual has all rows.
// CHECK-LABEL: @forward
// CHECK: %[[Y:.*]] = llm.linear %{{.*}} [@table] residual
// CHECK-NEXT: %[[ROWS:.*]] = llm.out_rows %[[Y]]
// CHECK-NEXT: return %[[ROWS]]
func.func @forward(%ids: tensor<?xi32>, %pos: tensor<?xi32>) -> tensor<?x32xf32> {
  %x = llm.embed %ids, @table : (tensor<?xi32>) -> tensor<?x16xf32>
  %r = llm.linear %x [@table] : (tensor<?x16xf32>) -> tensor<?x32xf32>
  %y = llm.linear %x [@table] residual(%r) : (tensor<?x16xf32>, tensor<?x32xf32>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

llm.weight @table [16, 16] "q8_0" from 0 at 0
llm.weight @g [16] "f32" from 0 at 1024
llm.kv @kv {heads = 1, head_dim = 16, encoding = "f16"}

// A value that something else reads: the cache needs all rows.
// CHECK-LABEL: @forward
// CHECK: %[[N:.*]] = llm.norm
// CHECK-NEXT: llm.kv_append %[[N]]
// CHECK-NEXT: %[[ROWS:.*]] = llm.out_rows %[[N]]
// CHECK-NEXT: llm.linear %[[ROWS]]
func.func @forward(%ids: tensor<?xi32>, %pos: tensor<?xi32>) -> tensor<?x16xf32> {
  %x = llm.embed %ids, @table : (tensor<?xi32>) -> tensor<?x16xf32>
  %n = llm.norm %x <rms, @g, eps = 1.0e-5> : tensor<?x16xf32>
  llm.kv_append %n, %n, %pos, @kv : tensor<?x16xf32>, tensor<?x16xf32>, tensor<?xi32>
  %y = llm.linear %n [@table] : (tensor<?x16xf32>) -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

// Rope needs the positions of its rows.
llm.weight @table [16, 16] "q8_0" from 0 at 0
llm.rope_table @rope half_split {inv_freq = array<f32: 1.0>}
// CHECK-LABEL: @forward
// CHECK: %[[R:.*]] = llm.rope
// CHECK-NEXT: llm.out_rows %[[R]]
func.func @forward(%ids: tensor<?xi32>, %pos: tensor<?xi32>) -> tensor<?x16xf32> {
  %x = llm.embed %ids, @table : (tensor<?xi32>) -> tensor<?x16xf32>
  %r = llm.rope %x, %pos, @rope {heads = 1} : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %r : tensor<?x16xf32>
}

// -----

// Functions of other names are not the model's.
// CHECK-LABEL: @other
// CHECK-NOT: llm.out_rows
func.func @other(%x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  return %x : tensor<?x16xf32>
}
