//===- CapiFixture.cpp - writes the artifact of the C test ----------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/unit/support/ChainModel.h"

#include <fstream>
#include <string>

int main(int argc, char **argv) {
  const std::string kind = argc == 3 ? argv[2] : "";
  llmc::test::ChainModel chain = llmc::test::ChainModel::counting(32);
  chain.encoder = kind == "encoder";
  if (kind == "cuda") // with code for CUDA devices
    chain.variants.push_back({"sm90", {}, 90});
  chain.endTokens = {20};
  chain.chatTemplate = "{% for m in messages %}t1 {{ m.content }}{% endfor %}"
                       "{% if add_generation_prompt %}t2 {% endif %}";
  const std::vector<uint8_t> bytes = chain.build();
  std::ofstream file(argv[1], std::ios::binary);
  file.write(reinterpret_cast<const char *>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return file.good() ? 0 : 1;
}
