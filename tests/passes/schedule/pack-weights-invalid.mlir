// RUN: llmc-opt %s --llmc-pack-weights -verify-diagnostics

// expected-error @+1 {{is used both as a matrix and as a vector}}
llm.weight @w [1, 16] "f32" from 0 at 0

func.func @forward(%x: tensor<?x16xf32>) -> tensor<?x1xf32> {
  %y = llm.linear %x [@w] {norm = #llm.norm<rms, @w, eps = 1.0e-5>} : (tensor<?x16xf32>) -> tensor<?x1xf32>
  return %y : tensor<?x1xf32>
}
