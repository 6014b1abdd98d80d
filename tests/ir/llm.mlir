// Every op and attribute of the llm dialect prints what it parses.
// RUN: llmc-opt %s | llmc-opt | FileCheck %s
// RUN: llmc-opt --mlir-print-op-generic %s | llmc-opt | FileCheck %s

// CHECK-LABEL: llm.weight @table [32, 16] "q8_0" from 0 at 4096{{$}}
llm.weight @table [32, 16] "q8_0" from 0 at 4096
// CHECK: llm.weight @sliced [48, 16] "f16" from 1 at 64 recipe [#llm.slice_rows<16, 32>, #llm.cast<"f32">, #llm.scale<1.250000e-01 : f32>, #llm.pack<"panel16">]
llm.weight @sliced [48, 16] "f16" from 1 at 64
  recipe [#llm.slice_rows<16, 32>, #llm.cast<"f32">, #llm.scale<0.125 : f32>, #llm.pack<"panel16">]
// CHECK: llm.weight @flipped [16, 48] "f16" from 0 at 0 recipe [#llm.transpose, #llm.slice_rows<32, 16>]
llm.weight @flipped [16, 48] "f16" from 0 at 0 recipe [#llm.transpose, #llm.slice_rows<32, 16>]
// CHECK: llm.weight @codes [3, 40] "int4_g32_zp_f32" from 0 at 0 parts <codes = "u4", stride = 64, scales = <"f32" from 0 at 96 stride 2>, offsets = <"u4" from 0 at 120 stride 2>>
llm.weight @codes [3, 40] "int4_g32_zp_f32" from 0 at 0
  parts <codes = "u4", stride = 64, scales = <"f32" from 0 at 96 stride 2>, offsets = <"u4" from 0 at 120 stride 2>>
// CHECK: llm.weight @channels [3, 40] "int8_row" from 0 at 0 parts <codes = "i8", stride = 3, scales = <"f16" from 1 at 0 stride 3>, transposed = true> recipe [#llm.pack<"panel16">]
llm.weight @channels [3, 40] "int8_row" from 0 at 0
  parts <codes = "i8", stride = 3, scales = <"f16" from 1 at 0 stride 3>, transposed = true>
  recipe [#llm.pack<"panel16">]
// CHECK: llm.weight @fewer [48, 16] "f16" from 1 at 64 recipe [#llm.quantize<"int4_g32", importance = <"f32" from 2 at 0 stride 0>>, #llm.pack<"panel16">]
llm.weight @fewer [48, 16] "f16" from 1 at 64
  recipe [#llm.quantize<"int4_g32", importance = <"f32" from 2 at 0 stride 0>>, #llm.pack<"panel16">]
// CHECK: llm.weight @gain [16] "f32" from 0 at 0
llm.weight @gain [16] "f32" from 0 at 0
llm.weight @shift [16] "f32" from 0 at 64
llm.weight @w [16, 16] "q4_1" from 0 at 128
llm.weight @w2 [16, 16] "q4_1" from 0 at 256
llm.weight @narrow [8, 16] "q4_1" from 0 at 384
llm.weight @narrow2 [8, 16] "q4_1" from 0 at 512
llm.weight @head_gain [8] "f32" from 0 at 640

// CHECK: llm.kv @kv {encoding = "f16", head_dim = 8 : i64, heads = 1 : i64}
llm.kv @kv {heads = 1, head_dim = 8, encoding = "f16"}
// CHECK: llm.kv @planned {capacity = 512 : i64, encoding = "f32", head_dim = 8 : i64, heads = 1 : i64, k_offset = 0 : i64, v_offset = 16384 : i64, window = 100 : i64}
llm.kv @planned {heads = 1, head_dim = 8, encoding = "f32", window = 100, capacity = 512,
                 k_offset = 0, v_offset = 16384}

// CHECK: llm.rope_table @rope{{ +}}half_split {inv_freq = array<f32: 1.000000e+00, 5.000000e-01>}
llm.rope_table @rope half_split {inv_freq = array<f32: 1.0, 0.5>}
// CHECK: llm.rope_table @yarn{{ +}}interleaved {inv_freq = array<f32: 1.000000e+00>, mscale = 1.250000e+00 : f32}
llm.rope_table @yarn interleaved {inv_freq = array<f32: 1.0>, mscale = 1.25 : f32}

// CHECK-LABEL: func.func @forward
func.func @forward(%ids: tensor<?xi32>, %pos: tensor<?xi32>) -> tensor<?x32xf32> {
  // CHECK: llm.embed %{{.*}}, @table {scale = 4.000000e+00 : f32} : (tensor<?xi32>) -> tensor<?x16xf32>
  %x = llm.embed %ids, @table {scale = 4.0 : f32} : (tensor<?xi32>) -> tensor<?x16xf32>
  // CHECK: llm.norm %{{.*}} <layer, @gain bias @shift, eps = 9.9999999999999995E-7 : f64> : tensor<?x16xf32>
  %n = llm.norm %x <layer, @gain bias @shift, eps = 1.0e-6 : f64> : tensor<?x16xf32>
  // CHECK: llm.norm %{{.*}} <rms, @head_gain, eps = {{.*}}> {groups = 2 : i64} : tensor<?x16xf32>
  %g = llm.norm %n <rms, @head_gain, eps = 1.0e-5> {groups = 2} : tensor<?x16xf32>
  // CHECK: llm.linear %{{.*}} [@w] {norm = #llm.norm<rms, @gain, eps = {{.*}}>} : (tensor<?x16xf32>) -> tensor<?x16xf32>
  %q = llm.linear %n [@w] {norm = #llm.norm<rms, @gain, eps = 1.0e-5>} : (tensor<?x16xf32>) -> tensor<?x16xf32>
  // CHECK: llm.linear %{{.*}} [@narrow, @narrow2] {biases = [@head_gain, unit]} : (tensor<?x16xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>)
  %k, %v = llm.linear %n [@narrow, @narrow2] {biases = [@head_gain, unit]}
    : (tensor<?x16xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>)
  // CHECK: llm.rope %{{.*}}, %{{.*}}, @rope {heads = 2 : i64} : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  %qr = llm.rope %q, %pos, @rope {heads = 2} : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  // CHECK: llm.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, @kv {heads = 2 : i64, scale = 2.500000e-01 : f32, softcap = 5.000000e+01 : f32}
  %a = llm.attention %qr, %k, %v, %pos, @kv {heads = 2, scale = 0.25 : f32, softcap = 50.0 : f32}
    : (tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?xi32>) -> tensor<?x16xf32>
  // CHECK: llm.kv_append %{{.*}}, %{{.*}}, %{{.*}}, @kv : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?xi32>
  llm.kv_append %k, %v, %pos, @kv : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?xi32>
  // CHECK: llm.attend %{{.*}}, %{{.*}}, @kv {heads = 2 : i64, scale = 2.500000e-01 : f32} : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  %a2 = llm.attend %a, %pos, @kv {heads = 2, scale = 0.25 : f32}
    : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  // CHECK: llm.qkv %{{.*}}, %{{.*}} [@w, @narrow, @narrow2], @planned
  // CHECK-SAME: heads = 2 : i64
  // CHECK-SAME: k_norm = #llm.norm<rms, @head_gain
  // CHECK-SAME: rope = @rope
  %q2 = llm.qkv %a2, %pos [@w, @narrow, @narrow2], @planned {heads = 2, rope = @rope,
      norm = #llm.norm<rms, @gain, eps = 1.0e-5>, k_norm = #llm.norm<rms, @head_gain, eps = 1.0e-5>}
    : (tensor<?x16xf32>, tensor<?xi32>) -> tensor<?x16xf32>
  // CHECK: llm.linear %{{.*}} [@w] residual(%{{.*}}) {activation = #llm<activation relu_squared>, scale = 2.000000e+00 : f32, softcap = 3.000000e+01 : f32}
  %r = llm.linear %q2 [@w] residual(%x)
    {activation = #llm<activation relu_squared>, scale = 2.0 : f32, softcap = 30.0 : f32}
    : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
  // CHECK: llm.linear %{{.*}} [@w, @w2] {activation = #llm<activation silu>, gated}
  %m = llm.linear %r [@w, @w2] {activation = #llm<activation silu>, gated}
    : (tensor<?x16xf32>) -> tensor<?x16xf32>
  // CHECK: llm.act gelu_erf %{{.*}} : tensor<?x16xf32>
  %act = llm.act gelu_erf %m : tensor<?x16xf32>
  // CHECK: llm.glu gelu_tanh %{{.*}}, %{{.*}} : tensor<?x16xf32>
  %glu = llm.glu gelu_tanh %act, %g : tensor<?x16xf32>
  // CHECK: llm.add %{{.*}}, %{{.*}} {scale = 5.000000e-01 : f32} : tensor<?x16xf32>
  %sum = llm.add %glu, %r {scale = 0.5 : f32} : tensor<?x16xf32>
  // CHECK: llm.out_rows %{{.*}} : tensor<?x16xf32> -> tensor<?x16xf32>
  %out = llm.out_rows %sum : tensor<?x16xf32> -> tensor<?x16xf32>
  %y = llm.linear %out [@table] : (tensor<?x16xf32>) -> tensor<?x32xf32>
  // CHECK: llm.scale %{{.*}} by 1.250000e-01 : tensor<?x32xf32>
  %s = llm.scale %y by 0.125 : tensor<?x32xf32>
  // CHECK: llm.softcap %{{.*}} at 3.000000e+01 : tensor<?x32xf32>
  %c = llm.softcap %s at 30.0 : tensor<?x32xf32>
  return %c : tensor<?x32xf32>
}
