// What the sched dialect refuses, and how it says so.
// RUN: llmc-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{'sched.linear_kernel' op has no segments}}
sched.linear_kernel @k {features = 16, act = #sched<act f32>, prologue = #sched<prologue rows>,
  max_rows = 1, segments = [], activation = #llm<activation none>, scale = 1.0 : f32,
  softcap = 0.0 : f32}

// -----

// expected-error @+1 {{'sched.linear_kernel' op has 1 : i64 where a segment is expected}}
sched.linear_kernel @k {features = 16, act = #sched<act f32>, prologue = #sched<prologue rows>,
  max_rows = 1, segments = [1], activation = #llm<activation none>, scale = 1.0 : f32,
  softcap = 0.0 : f32}

// -----

// expected-error @+1 {{'sched.linear_kernel' op is gated: it needs two segments of equal rows}}
sched.linear_kernel @k {features = 16, act = #sched<act f32>, prologue = #sched<prologue rows>, gated,
  segments = [#sched.segment<16, "f32", bias = false>], max_rows = 1,
  activation = #llm<activation none>, scale = 1.0 : f32, softcap = 0.0 : f32}

// -----

// expected-error @+1 {{'sched.linear_kernel' op is gated: it needs two segments of equal rows}}
sched.linear_kernel @k {features = 16, act = #sched<act f32>, prologue = #sched<prologue rows>, gated,
  segments = [#sched.segment<16, "f32", bias = false>, #sched.segment<32, "f32", bias = false>],
  max_rows = 1, activation = #llm<activation none>, scale = 1.0 : f32, softcap = 0.0 : f32}

// -----

// expected-error @+1 {{'sched.linear_kernel' op needs a norm exactly when its prologue is norm}}
sched.linear_kernel @k {features = 16, act = #sched<act f32>, prologue = #sched<prologue norm>,
  segments = [#sched.segment<16, "f32", bias = false>], max_rows = 1,
  activation = #llm<activation none>, scale = 1.0 : f32, softcap = 0.0 : f32}

// -----

// expected-error @+1 {{'sched.linear_kernel' op merges partials of no heads}}
sched.linear_kernel @k {features = 16, act = #sched<act f32>, prologue = #sched<prologue merge>,
  segments = [#sched.segment<16, "f32", bias = false>], max_rows = 1,
  activation = #llm<activation none>, scale = 1.0 : f32, softcap = 0.0 : f32}

// -----

// expected-error @+1 {{'sched.qkv_kernel' op has 1 segments; query, key, value expected}}
sched.qkv_kernel @k {features = 16, act = #sched<act int8>, prologue = #sched<prologue rows>,
  segments = [#sched.segment<16, "f32", bias = false>], heads = 1, kv_heads = 1, head_dim = 16,
  rope_pairs = 8, rope_kind = #llm<rope_kind interleaved>, kv_encoding = "f16", capacity = 256,
  max_rows = 1}

// -----

// expected-error @+1 {{'sched.qkv_kernel' op has heads of 24 features, no multiple of 16}}
sched.qkv_kernel @k {features = 16, act = #sched<act int8>, prologue = #sched<prologue rows>,
  segments = [#sched.segment<24, "f32", bias = false>, #sched.segment<24, "f32", bias = false>,
              #sched.segment<24, "f32", bias = false>],
  heads = 1, kv_heads = 1, head_dim = 24, rope_pairs = 8, rope_kind = #llm<rope_kind interleaved>,
  kv_encoding = "f16", capacity = 256, max_rows = 1}

// -----

sched.program @p attributes {max_rows = 1} {
  // expected-error @+1 {{attribute 'bytes' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  sched.buffer @x 0
}

// -----

sched.program @p attributes {max_rows = 1} {
  // expected-error @+1 {{'sched.buffer' op is at 32, which is no multiple of 64}}
  sched.buffer @x 64 at 32
}

// -----

sched.rope_table_kernel @k {inv_freq = array<f32: 1.0>, mscale = 1.0 : f32}
sched.program @p attributes {max_rows = 1} {
  // expected-error @+1 {{'sched.dispatch' op has "x" where a binding is expected}}
  sched.dispatch @k <base = 1> ["x"] {op_name = "k"}
}

// -----

sched.rope_table_kernel @k {inv_freq = array<f32: 1.0>, mscale = 1.0 : f32}
sched.program @p attributes {max_rows = 1} {
  // expected-error @+1 {{'sched.dispatch' op has no tiles}}
  sched.dispatch @k <base = 0> [] {op_name = "k"}
}

// -----

llm.weight @k [16] "f32" from 0 at 0
sched.program @p attributes {max_rows = 1} {
  // expected-error @+1 {{'sched.dispatch' op runs @k, which is no kernel}}
  sched.dispatch @k <base = 1> [] {op_name = "k"}
}

// -----

sched.program @p attributes {max_rows = 1} {
  // expected-error @+1 {{'sched.dispatch' op runs @p, which is no kernel}}
  sched.dispatch @p <base = 1> [] {op_name = "k"}
}

// -----

sched.rope_table_kernel @k {inv_freq = array<f32: 1.0>, mscale = 1.0 : f32}
llm.weight @w [16] "f32" from 0 at 0
sched.program @p attributes {max_rows = 1} {
  // expected-error @+1 {{'sched.dispatch' op binds @w as buffer, which it is not}}
  sched.dispatch @k <base = 1> [#sched.bind<write buffer @w>] {op_name = "k"}
}

// -----

sched.rope_table_kernel @k {inv_freq = array<f32: 1.0>, mscale = 1.0 : f32}
llm.weight @w [16] "f32" from 0 at 0
sched.program @p attributes {max_rows = 1} {
  // expected-error @+1 {{'sched.dispatch' op binds @w as key, which it is not}}
  sched.dispatch @k <base = 1> [#sched.bind<write key @w>] {op_name = "k"}
}

// -----

sched.rope_table_kernel @k {inv_freq = array<f32: 1.0>, mscale = 1.0 : f32}
sched.program @p attributes {max_rows = 1} {
  sched.buffer @x 64
  // expected-error @+1 {{'sched.dispatch' op binds @x as weight, which it is not}}
  sched.dispatch @k <base = 1> [#sched.bind<read weight @x>] {op_name = "k"}
}

// -----

// expected-error @+1 {{'sched.barrier' op expects parent op 'sched.program'}}
sched.barrier

// -----

// expected-error @+1 {{'sched.tensor_kernel' op does not end its arguments with the first and the last tile}}
sched.tensor_kernel @k {
^bb0(%x: memref<8xf32>, %begin: index):
}

// -----

// expected-error @+1 {{'sched.tensor_kernel' op binds 'memref<?xf32>' where a memref of static shape is expected}}
sched.tensor_kernel @k {
^bb0(%x: memref<?xf32>, %begin: index, %end: index):
}

// -----

// expected-error @+1 {{'sched.linear_kernel' op adds to an input that it does not normalize}}
sched.linear_kernel @k {features = 16, act = #sched<act f32>, prologue = #sched<prologue rows>,
  add_norm = #sched.norm<rms, bias = false, eps = 1.0e-5 : f32>, max_rows = 1,
  segments = [#sched.segment<16, "f32", bias = false>], activation = #llm<activation none>,
  scale = 1.0 : f32, softcap = 0.0 : f32}

// -----

// expected-error @+1 {{'sched.linear_kernel' op keeps a sum that it does not make}}
sched.linear_kernel @k {features = 16, act = #sched<act f32>, prologue = #sched<prologue rows>,
  keep_sum, max_rows = 1, segments = [#sched.segment<16, "f32", bias = false>],
  activation = #llm<activation none>, scale = 1.0 : f32, softcap = 0.0 : f32}
