// What cannot be scheduled, and how that is said.
// RUN: llmc-opt %s -split-input-file --llmc-form-dispatches -verify-diagnostics

// expected-error @+1 {{has no function @forward(tokens, positions) to schedule}}
module {
}

// -----

llm.kv @kv {heads = 1, head_dim = 24, encoding = "f16", capacity = 256, k_offset = 0, v_offset = 16384}
func.func @forward(%q: tensor<?x24xf32>, %pos: tensor<?xi32>) -> tensor<?x24xf32> {
  // expected-error @+1 {{cannot be scheduled; attention must be split first (llmc-split-attention)}}
  %a = llm.attention %q, %q, %q, %pos, @kv {heads = 1, scale = 1.0 : f32}
    : (tensor<?x24xf32>, tensor<?x24xf32>, tensor<?x24xf32>, tensor<?xi32>) -> tensor<?x24xf32>
  return %a : tensor<?x24xf32>
}

// -----

llm.kv @kv {heads = 1, head_dim = 16, encoding = "f16"}
func.func @forward(%q: tensor<?x16xf32>, %pos: tensor<?xi32>) -> tensor<?x16xf32> {
  // expected-error @+1 {{cache @kv has no plan; run llmc-plan-kv first}}
  %a = llm.attend %q, %pos, @kv {heads = 1, scale = 1.0 : f32} : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %a : tensor<?x16xf32>
}

// -----

llm.kv @kv {heads = 1, head_dim = 16, encoding = "f16"}
func.func @forward(%q: tensor<?x16xf32>, %pos: tensor<?xi32>) -> tensor<?x16xf32> {
  // expected-error @+1 {{cache @kv has no plan; run llmc-plan-kv first}}
  llm.kv_append %q, %q, %pos, @kv : tensor<?x16xf32>, tensor<?x16xf32>, tensor<?xi32>
  return %q : tensor<?x16xf32>
}

// -----

func.func @forward(%ids: tensor<?xi32>, %pos: tensor<?xi32>) {
  // expected-error @+1 {{@forward must return the logits and nothing else}}
  return
}
