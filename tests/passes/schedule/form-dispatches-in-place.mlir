// A result takes the place of a value that nothing needs afterwards, and only then.
// RUN: llmc-opt %s -split-input-file --llmc-form-dispatches | FileCheck %s

llm.weight @table [32, 16] "q8_0" from 0 at 0 recipe [#llm.pack<"panel16">]
llm.weight @w [16, 16] "q8_0" from 0 at 1024 recipe [#llm.pack<"panel16">]
llm.weight @g [16] "f32" from 0 at 2048

// The residual %x is needed by the second linear too: the first writes elsewhere, the second in place.
// CHECK-LABEL: sched.program @decode
// CHECK: sched.dispatch @embed_0 {{.*}}#sched.bind<write buffer @[[X:[a-z.0-9]*]]>
// CHECK: sched.dispatch @linear_0 {{.*}}#sched.bind<read buffer @[[X]]>, #sched.bind<write buffer @[[A:[a-z.0-9]*]]>]
// CHECK: sched.dispatch @linear_0 <base = 1> [#sched.bind<read buffer @[[A]]>, #sched.bind<read weight @w>, #sched.bind<read buffer @[[X]]>, #sched.bind<write buffer @[[X]]>]
func.func @forward(%ids: tensor<?xi32>, %pos: tensor<?xi32>) -> tensor<?x32xf32> {
  %x = llm.embed %ids, @table : (tensor<?xi32>) -> tensor<?x16xf32>
  %a = llm.linear %x [@w] residual(%x) : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  %b = llm.linear %a [@w] residual(%x) : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  %y = llm.linear %b [@table] : (tensor<?x16xf32>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

llm.weight @table [32, 16] "q8_0" from 0 at 0 recipe [#llm.pack<"panel16">]
llm.weight @w [16, 16] "q8_0" from 0 at 1024 recipe [#llm.pack<"panel16">]
llm.weight @g [16] "f32" from 0 at 2048

// x + norm(y) is one dispatch, where nothing stands between the two.
// CHECK-LABEL: sched.program @decode
// CHECK: op_name = "norm_add"
// CHECK-NOT: op_name = "norm"
// CHECK-LABEL: sched.program @verify
func.func @forward(%ids: tensor<?xi32>, %pos: tensor<?xi32>) -> tensor<?x32xf32> {
  %x = llm.embed %ids, @table : (tensor<?xi32>) -> tensor<?x16xf32>
  %y = llm.linear %x [@w] : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %n = llm.norm %y <rms, @g, eps = 1.0e-5> : tensor<?x16xf32>
  %s = llm.add %x, %n : tensor<?x16xf32>
  %o = llm.linear %s [@table] : (tensor<?x16xf32>) -> tensor<?x32xf32>
  return %o : tensor<?x32xf32>
}

// -----

llm.weight @table [32, 16] "q8_0" from 0 at 0 recipe [#llm.pack<"panel16">]
llm.weight @w [16, 16] "q8_0" from 0 at 1024 recipe [#llm.pack<"panel16">]
llm.weight @g [16] "f32" from 0 at 2048

// The linear between them takes the place of %y: the norm must have read it.
// CHECK-LABEL: sched.program @decode
// CHECK: op_name = "norm"
// CHECK: sched.dispatch @linear_{{.*}}#sched.bind<read buffer @[[Y:[a-z.0-9]*]]>, #sched.bind<write buffer @[[Y]]>]
// CHECK: op_name = "add"
// CHECK-LABEL: sched.program @verify
func.func @forward(%ids: tensor<?xi32>, %pos: tensor<?xi32>) -> tensor<?x32xf32> {
  %x = llm.embed %ids, @table : (tensor<?xi32>) -> tensor<?x16xf32>
  %y = llm.linear %x [@w] : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %n = llm.norm %y <rms, @g, eps = 1.0e-5> : tensor<?x16xf32>
  %z = llm.linear %x [@w] residual(%y) : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  %s = llm.add %z, %n : tensor<?x16xf32>
  %o = llm.linear %s [@table] : (tensor<?x16xf32>) -> tensor<?x32xf32>
  return %o : tensor<?x32xf32>
}

// -----

// Values that nothing uses are computed all the same.
llm.weight @table [32, 16] "q8_0" from 0 at 0 recipe [#llm.pack<"panel16">]
llm.weight @g [16] "f32" from 0 at 2048
// CHECK-LABEL: sched.program @decode
// CHECK: op_name = "norm"
// CHECK: op_name = "logits"
func.func @forward(%ids: tensor<?xi32>, %pos: tensor<?xi32>) -> tensor<?x32xf32> {
  %x = llm.embed %ids, @table : (tensor<?xi32>) -> tensor<?x16xf32>
  %n = llm.norm %x <rms, @g, eps = 1.0e-5> : tensor<?x16xf32>
  %o = llm.linear %x [@table] : (tensor<?x16xf32>) -> tensor<?x32xf32>
  return %o : tensor<?x32xf32>
}

// -----

llm.weight @table [32, 16] "q8_0" from 0 at 0 recipe [#llm.pack<"panel16">]
llm.weight @w [16, 16] "q8_0" from 0 at 1024 recipe [#llm.pack<"panel16">]
llm.weight @g [16] "f32" from 0 at 2048

// With few rows the reader that normalizes x + norm(y) makes it, and keeps it for those that come
// later, elsewhere than x; with many rows it is a dispatch.
// CHECK-LABEL: sched.program @decode
// CHECK: sched.dispatch @embed_0 {{.*}}#sched.bind<write buffer @[[X:[a-z.0-9]*]]>
// CHECK: sched.dispatch @linear{{.*}}#sched.bind<write buffer @[[Y:[a-z.0-9]*]]>]
// CHECK-NEXT: sched.dispatch @[[SUM:linear_[0-9]*]] <base = 1> [#sched.bind<read buffer @[[X]]>, #sched.bind<read buffer @[[Y]]>, #sched.bind<read weight @g>, #sched.bind<write buffer @[[S:[a-z.0-9]*]]>, #sched.bind<read weight @g>, #sched.bind<read weight @w>, #sched.bind<write buffer @[[Z:[a-z.0-9]*]]>]
// CHECK-NEXT: sched.dispatch @linear{{.*}}#sched.bind<read buffer @[[Z]]>, #sched.bind<read weight @w>, #sched.bind<read buffer @[[S]]>
// CHECK: sched.linear_kernel @[[SUM]] {{.*}}add_norm = #sched.norm<rms, bias = false{{.*}}keep_sum{{.*}}prologue = #sched<prologue norm>
// CHECK-LABEL: sched.program @prefill
// CHECK: op_name = "norm_add"
func.func @forward(%ids: tensor<?xi32>, %pos: tensor<?xi32>) -> tensor<?x32xf32> {
  %x = llm.embed %ids, @table : (tensor<?xi32>) -> tensor<?x16xf32>
  %y = llm.linear %x [@w] : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %n = llm.norm %y <rms, @g, eps = 1.0e-5> : tensor<?x16xf32>
  %s = llm.add %x, %n : tensor<?x16xf32>
  %z = llm.linear %s [@w] {norm = #llm.norm<rms, @g, eps = 1.0e-5>} : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %a = llm.linear %z [@w] residual(%s) : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  %o = llm.linear %a [@table] : (tensor<?x16xf32>) -> tensor<?x32xf32>
  return %o : tensor<?x32xf32>
}
