// What comes out of a norm stays float32, behind it or fused with it; what does not, does not.
// RUN: llmc-opt %s '--llmc-form-dispatches=f32-norms' | FileCheck %s

llm.weight @table [32, 32] "q8_0" from 0 at 0 recipe [#llm.pack<"panel16">]
llm.weight @up [64, 32] "q8_0" from 0 at 2048 recipe [#llm.pack<"panel16">]
llm.weight @down [32, 64] "q8_0" from 0 at 8192 recipe [#llm.pack<"panel16">]
llm.weight @head [32, 32] "q8_0" from 0 at 16384 recipe [#llm.pack<"panel16">]
llm.weight @g [32] "f32" from 0 at 65536

// CHECK-LABEL: sched.program @prefill
// CHECK: sched.dispatch @[[UP:linear_[0-9]]] {{.*}}read weight @up
// CHECK: sched.dispatch @[[DOWN:linear_[0-9]]] {{.*}}read weight @down
// CHECK: sched.dispatch @[[HEAD:linear_[0-9]]] {{.*}}read weight @head
// CHECK-DAG: sched.linear_kernel @[[UP]] {act = #sched<act f32>
// CHECK-DAG: sched.linear_kernel @[[DOWN]] {act = #sched<act int8>
// CHECK-DAG: sched.linear_kernel @[[HEAD]] {act = #sched<act f32>
func.func @forward(%ids: tensor<?xi32>, %pos: tensor<?xi32>) -> tensor<?x32xf32> {
  %x = llm.embed %ids, @table : (tensor<?xi32>) -> tensor<?x32xf32>
  %h = llm.norm %x <layer, @g, eps = 1.0e-5 : f32> : tensor<?x32xf32>
  %u = llm.linear %h [@up] : (tensor<?x32xf32>) -> tensor<?x64xf32>
  %d = llm.linear %u [@down] residual(%h) : (tensor<?x64xf32>, tensor<?x32xf32>) -> tensor<?x32xf32>
  %y = llm.linear %d [@head] {norm = #llm.norm<rms, @g, eps = 1.0e-5 : f32>} : (tensor<?x32xf32>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
