// The rows whose logits are wanted are chosen before the head's norm, projection and soft-cap.
// RUN: llmc-opt %s --llmc-select-out-rows | FileCheck %s
// Twice is as good as once.
// RUN: llmc-opt %s --llmc-select-out-rows --llmc-select-out-rows | FileCheck %s

llm.weight @table [32, 16] "q8_0" from 0 at 0
llm.weight @g [16] "f32" from 0 at 1024

// CHECK-LABEL: @forward
// CHECK: %[[X:.*]] = llm.embed
// CHECK-NEXT: %[[ROWS:.*]] = llm.out_rows %[[X]]
// CHECK-NEXT: %[[N:.*]] = llm.norm %[[ROWS]]
// CHECK-NEXT: %[[Y:.*]] = llm.linear %[[N]]
// CHECK-NEXT: %[[S:.*]] = llm.scale %[[Y]]
// CHECK-NEXT: %[[C:.*]] = llm.softcap %[[S]]
// CHECK-NEXT: return %[[C]]
func.func @forward(%ids: tensor<?xi32>, %pos: tensor<?xi32>) -> tensor<?x32xf32> {
  %x = llm.embed %ids, @table : (tensor<?xi32>) -> tensor<?x16xf32>
  %n = llm.norm %x <rms, @g, eps = 1.0e-5> : tensor<?x16xf32>
  %y = llm.linear %n [@table] : (tensor<?x16xf32>) -> tensor<?x32xf32>
  %s = llm.scale %y by 0.5 : tensor<?x32xf32>
  %c = llm.softcap %s at 30.0 : tensor<?x32xf32>
  return %c : tensor<?x32xf32>
}
