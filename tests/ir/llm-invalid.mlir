// What the llm dialect refuses, and how it says so.
// RUN: llmc-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{'llm.weight' op has 3 dimensions; 1 or 2 expected}}
llm.weight @w [2, 2, 2] "f32" from 0 at 0

// -----

// expected-error @+1 {{'llm.weight' op has a dimension of 0}}
llm.weight @w [16, 0] "f32" from 0 at 0

// -----

// expected-error @+1 {{attribute 'offset' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
llm.weight @w [16, 16] "f32" from 0 at -1

// -----

// expected-error @+1 {{recipe: slice_rows<8, 16> leaves the 16 rows}}
llm.weight @w [16, 16] "f32" from 0 at 0 recipe [#llm.slice_rows<8, 16>]

// -----

// A slice is checked against what the steps before it leave.
// expected-error @+1 {{recipe: transpose of a weight that is no matrix of floats}}
llm.weight @w [16, 32] "q8_0" from 0 at 0 recipe [#llm.transpose]

// -----

// expected-error @+1 {{has a transpose that is not the first step}}
llm.weight @w [16, 32] "f16" from 0 at 0 recipe [#llm.cast<"f32">, #llm.transpose]

// -----

// expected-error @+1 {{recipe: slice_rows<0, 9> leaves the 8 rows}}
llm.weight @w [16, 16] "f32" from 0 at 0 recipe [#llm.slice_rows<0, 8>, #llm.slice_rows<0, 9>]

// -----

// expected-error @+1 {{recipe: cast to 'q4_1', which is not a float encoding}}
llm.weight @w [16, 16] "f32" from 0 at 0 recipe [#llm.cast<"q4_1">]

// -----

// expected-error @+1 {{recipe: scale of a weight in 'f16'; cast it to f32 first}}
llm.weight @w [16, 16] "f16" from 0 at 0 recipe [#llm.scale<2.0 : f32>]

// -----

// expected-error @+1 {{recipe: quantize<"int4_g32"> of a vector}}
llm.weight @w [16] "f32" from 0 at 0 recipe [#llm.quantize<"int4_g32">]

// -----

// expected-error @+1 {{'llm.weight' op has a step other than pack after its quantize step}}
llm.weight @w [16, 16] "f32" from 0 at 0 recipe [#llm.quantize<"int4_g32">, #llm.cast<"f32">]

// -----

// expected-error @+1 {{recipe: recipe step 5 : i64 is not known}}
llm.weight @w [16, 16] "f16" from 0 at 0 recipe [5]

// -----

// expected-error @+1 {{'llm.weight' op has a step after its pack step}}
llm.weight @w [16, 16] "f16" from 0 at 0 recipe [#llm.pack<"panel16">, #llm.cast<"f32">]

// -----

// expected-error @+1 {{attribute 'heads' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
llm.kv @kv {heads = 0, head_dim = 8, encoding = "f16"}

// -----

// expected-error @+1 {{'llm.kv' op has encoding 'q8_0'; f16 or f32 expected}}
llm.kv @kv {heads = 1, head_dim = 8, encoding = "q8_0"}

// -----

// expected-error @+1 {{attribute 'window' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
llm.kv @kv {heads = 1, head_dim = 8, encoding = "f16", window = -1}

// -----

// expected-error @+1 {{'llm.kv' op has capacity 100, which is no multiple of 256}}
llm.kv @kv {heads = 1, head_dim = 8, encoding = "f16", capacity = 100}

// -----

// expected-error @+1 {{'llm.rope_table' op has no frequencies}}
llm.rope_table @rope half_split {inv_freq = array<f32>}

// -----

func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{operand #0 must be float32 rows of a known number of features}}
  %y = llm.scale %x by 2.0 : tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @+1 {{operand #0 must be float32 rows of a known number of features}}
  %y = llm.scale %x by 2.0 : tensor<?x?xf32>
  return
}

// -----

func.func @f(%ids: tensor<?xi32>) {
  // expected-error @+1 {{'llm.embed' op uses @nothing, which is no llm.weight}}
  %y = llm.embed %ids, @nothing : (tensor<?xi32>) -> tensor<?x8xf32>
  return
}

// -----

llm.weight @table [32, 16] "f32" from 0 at 0
func.func @f(%ids: tensor<?xi32>) {
  // expected-error @+1 {{'llm.embed' op needs @table to be 32x8, it is 32x16}}
  %y = llm.embed %ids, @table : (tensor<?xi32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x16xf32>) {
  // expected-error @+1 {{'llm.linear' op has no weights}}
  "llm.linear"(%x) {weights = []} : (tensor<?x16xf32>) -> ()
  return
}

// -----

func.func @f(%x: tensor<?x16xf32>) {
  // expected-error @+1 {{'llm.linear' op has "w" where a weight's symbol is expected}}
  %y = llm.linear %x ["w"] : (tensor<?x16xf32>) -> tensor<?x16xf32>
  return
}

// -----

llm.weight @w [16, 16] "f32" from 0 at 0
func.func @f(%x: tensor<?x16xf32>) {
  // expected-error @+1 {{'llm.linear' op has 1 weights but 2 biases; write unit for a weight without bias}}
  %y = llm.linear %x [@w] {biases = [unit, unit]} : (tensor<?x16xf32>) -> tensor<?x16xf32>
  return
}

// -----

llm.weight @w [16, 16] "f32" from 0 at 0
func.func @f(%x: tensor<?x16xf32>) {
  // expected-error @+1 {{'llm.linear' op has 0 : i64 where a bias' symbol or unit is expected}}
  %y = llm.linear %x [@w] {biases = [0]} : (tensor<?x16xf32>) -> tensor<?x16xf32>
  return
}

// -----

llm.weight @w [16, 16] "f32" from 0 at 0
func.func @f(%x: tensor<?x16xf32>) {
  // expected-error @+1 {{'llm.linear' op is gated: it needs two weights and one result, it has 1 and 1}}
  %y = llm.linear %x [@w] {gated} : (tensor<?x16xf32>) -> tensor<?x16xf32>
  return
}

// -----

llm.weight @w [16, 16] "f32" from 0 at 0
func.func @f(%x: tensor<?x16xf32>) {
  // expected-error @+1 {{'llm.linear' op has 2 weights but 1 results}}
  %y = llm.linear %x [@w, @w] : (tensor<?x16xf32>) -> tensor<?x16xf32>
  return
}

// -----

llm.weight @w [16, 16] "f32" from 0 at 0
func.func @f(%x: tensor<?x16xf32>, %r: tensor<?x8xf32>) {
  // expected-error @+1 {{'llm.linear' op has a residual that does not match its one result}}
  %y = llm.linear %x [@w] residual(%r) : (tensor<?x16xf32>, tensor<?x8xf32>) -> tensor<?x16xf32>
  return
}

// -----

func.func @f(%x: tensor<?x16xf32>) {
  // expected-error @+1 {{'llm.linear' op uses @w, which is no llm.weight}}
  %y = llm.linear %x [@w] : (tensor<?x16xf32>) -> tensor<?x16xf32>
  return
}

// -----

// The recipe's last shape counts, not the source's.
llm.weight @w [32, 16] "f32" from 0 at 0 recipe [#llm.slice_rows<0, 16>]
func.func @f(%x: tensor<?x16xf32>) {
  // expected-error @+1 {{'llm.linear' op needs @w to be 32x16, it is 16x16}}
  %y = llm.linear %x [@w] : (tensor<?x16xf32>) -> tensor<?x32xf32>
  return
}

// -----

llm.weight @w [16, 16] "f32" from 0 at 0
llm.weight @b [8] "f32" from 0 at 0
func.func @f(%x: tensor<?x16xf32>) {
  // expected-error @+1 {{'llm.linear' op needs @b to be 1x16, it is 1x8}}
  %y = llm.linear %x [@w] {biases = [@b]} : (tensor<?x16xf32>) -> tensor<?x16xf32>
  return
}

// -----

llm.weight @w [16, 16] "f32" from 0 at 0
llm.weight @g [16] "f32" from 0 at 0
func.func @f(%x: tensor<?x16xf32>) {
  // expected-error @+1 {{'llm.linear' op has an rms norm with a bias}}
  %y = llm.linear %x [@w] {norm = #llm.norm<rms, @g bias @g, eps = 1.0e-5>} : (tensor<?x16xf32>) -> tensor<?x16xf32>
  return
}

// -----

llm.weight @g [8] "f32" from 0 at 0
func.func @f(%x: tensor<?x16xf32>) {
  // expected-error @+1 {{'llm.norm' op needs @g to be 1x16, it is 1x8}}
  %y = llm.norm %x <rms, @g, eps = 1.0e-5> : tensor<?x16xf32>
  return
}

// -----

llm.weight @g [16] "f32" from 0 at 0
func.func @f(%x: tensor<?x16xf32>) {
  // expected-error @+1 {{'llm.norm' op cannot split 16 features into 3 groups}}
  %y = llm.norm %x <rms, @g, eps = 1.0e-5> {groups = 3} : tensor<?x16xf32>
  return
}

// -----

func.func @f(%x: tensor<?x16xf32>) {
  // expected-error @+1 {{'llm.softcap' op needs a positive cap}}
  %y = llm.softcap %x at 0.0 : tensor<?x16xf32>
  return
}

// -----

llm.rope_table @rope half_split {inv_freq = array<f32: 1.0>}
func.func @f(%x: tensor<?x16xf32>, %pos: tensor<?xi32>) {
  // expected-error @+1 {{'llm.rope' op cannot split 16 features into 3 heads}}
  %y = llm.rope %x, %pos, @rope {heads = 3} : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return
}

// -----

func.func @f(%x: tensor<?x16xf32>, %pos: tensor<?xi32>) {
  // expected-error @+1 {{'llm.rope' op uses @rope, which is no llm.rope_table}}
  %y = llm.rope %x, %pos, @rope {heads = 2} : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return
}

// -----

llm.rope_table @rope half_split {inv_freq = array<f32: 1.0, 0.5, 0.25>}
func.func @f(%x: tensor<?x16xf32>, %pos: tensor<?xi32>) {
  // expected-error @+1 {{'llm.rope' op rotates 6 features of heads of 4}}
  %y = llm.rope %x, %pos, @rope {heads = 4} : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return
}

// -----

func.func @f(%k: tensor<?x8xf32>, %pos: tensor<?xi32>) {
  // expected-error @+1 {{'llm.kv_append' op uses @kv, which is no llm.kv}}
  llm.kv_append %k, %k, %pos, @kv : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?xi32>
  return
}

// -----

llm.kv @kv {heads = 2, head_dim = 8, encoding = "f16"}
func.func @f(%k: tensor<?x8xf32>, %pos: tensor<?xi32>) {
  // expected-error @+1 {{'llm.kv_append' op writes 8 and 8 features to a cache of 16}}
  llm.kv_append %k, %k, %pos, @kv : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?xi32>
  return
}

// -----

llm.kv @kv {heads = 2, head_dim = 8, encoding = "f16"}
func.func @f(%q: tensor<?x24xf32>, %pos: tensor<?xi32>) {
  // expected-error @+1 {{'llm.attend' op has 3 heads, no multiple of the cache's 2}}
  %y = llm.attend %q, %pos, @kv {heads = 3, scale = 1.0 : f32} : tensor<?x24xf32>, tensor<?xi32> -> tensor<?x24xf32>
  return
}

// -----

llm.kv @kv {heads = 2, head_dim = 8, encoding = "f16"}
func.func @f(%q: tensor<?x24xf32>, %pos: tensor<?xi32>) {
  // expected-error @+1 {{'llm.attend' op has a query of 24 features, 4 heads of 8 need 32}}
  %y = llm.attend %q, %pos, @kv {heads = 4, scale = 1.0 : f32} : tensor<?x24xf32>, tensor<?xi32> -> tensor<?x24xf32>
  return
}

// -----

llm.kv @kv {heads = 2, head_dim = 8, encoding = "f16"}
func.func @f(%q: tensor<?x16xf32>, %pos: tensor<?xi32>) {
  // expected-error @+1 {{'llm.attend' op must give the type of its query}}
  %y = llm.attend %q, %pos, @kv {heads = 2, scale = 1.0 : f32} : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x8xf32>
  return
}

// -----

llm.kv @kv {heads = 2, head_dim = 8, encoding = "f16"}
func.func @f(%q: tensor<?x16xf32>, %k: tensor<?x8xf32>, %pos: tensor<?xi32>) {
  // expected-error @+1 {{'llm.attention' op writes 8 and 8 features to a cache of 16}}
  %y = llm.attention %q, %k, %k, %pos, @kv {heads = 2, scale = 1.0 : f32}
    : (tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?xi32>) -> tensor<?x16xf32>
  return
}

// -----

llm.kv @kv {heads = 1, head_dim = 16, encoding = "f16"}
llm.weight @w [16, 16] "f32" from 0 at 0
func.func @f(%x: tensor<?x16xf32>, %pos: tensor<?xi32>) {
  // expected-error @+1 {{'llm.qkv' op has 2 weights; query, key, value expected}}
  %y = llm.qkv %x, %pos [@w, @w], @kv {heads = 1} : (tensor<?x16xf32>, tensor<?xi32>) -> tensor<?x16xf32>
  return
}

// -----

llm.kv @kv {heads = 1, head_dim = 16, encoding = "f16"}
llm.weight @w [16, 16] "f32" from 0 at 0
llm.weight @v [32, 16] "f32" from 0 at 0
func.func @f(%x: tensor<?x16xf32>, %pos: tensor<?xi32>) {
  // expected-error @+1 {{'llm.qkv' op needs @v to be 16x16, it is 32x16}}
  %y = llm.qkv %x, %pos [@w, @w, @v], @kv {heads = 1} : (tensor<?x16xf32>, tensor<?xi32>) -> tensor<?x16xf32>
  return
}

// -----

llm.kv @kv {heads = 1, head_dim = 16, encoding = "f16"}
llm.weight @w [16, 16] "f32" from 0 at 0
llm.weight @g [8] "f32" from 0 at 0
func.func @f(%x: tensor<?x16xf32>, %pos: tensor<?xi32>) {
  // expected-error @+1 {{'llm.qkv' op needs @g to be 1x16, it is 1x8}}
  %y = llm.qkv %x, %pos [@w, @w, @w], @kv {heads = 1, q_norm = #llm.norm<rms, @g, eps = 1.0e-5>}
    : (tensor<?x16xf32>, tensor<?xi32>) -> tensor<?x16xf32>
  return
}

// -----

llm.kv @kv {heads = 1, head_dim = 16, encoding = "f16"}
llm.weight @w [16, 16] "f32" from 0 at 0
func.func @f(%x: tensor<?x16xf32>, %pos: tensor<?xi32>) {
  // expected-error @+1 {{'llm.qkv' op uses @w, which is no llm.rope_table}}
  %y = llm.qkv %x, %pos [@w, @w, @w], @kv {heads = 1, rope = @w}
    : (tensor<?x16xf32>, tensor<?xi32>) -> tensor<?x16xf32>
  return
}

// -----

llm.kv @kv {heads = 1, head_dim = 8, encoding = "f16", window = 4}
func.func @f(%q: tensor<?x8xf32>, %pos: tensor<?xi32>) -> tensor<?x8xf32> {
  // expected-error @+1 {{sees all rows of a step, but "kv" has a window of 4}}
  %a = llm.attend %q, %pos, @kv {heads = 1, scale = 1.0 : f32, bidirectional} : tensor<?x8xf32>, tensor<?xi32> -> tensor<?x8xf32>
  return %a : tensor<?x8xf32>
}
