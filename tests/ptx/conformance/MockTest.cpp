//===- MockTest.cpp - the mock driver, from outside -----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/mockcuda/Abi.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

// The driver as a program sees it: through dlopen and cuGetProcAddress, nothing else.

namespace {
const char *const text = R"(.version 8.7
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 p, .param .f32 f, .param .u32 n) {
  .reg .pred %p; .reg .b32 %r<5>; .reg .b64 %rd<4>; .reg .f32 %f<4>;
  ld.param.u64 %rd1, [p]; ld.param.f32 %f1, [f]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r2, %r2, %r3, %r4;
  setp.ge.u32 %p, %r2, %r1; @%p bra END;
  mul.wide.u32 %rd2, %r2, 4; add.u64 %rd1, %rd1, %rd2;
  griddepcontrol.wait;
  ld.global.f32 %f2, [%rd1]; mul.f32 %f2, %f2, %f1; st.global.f32 [%rd1], %f2;
END: ret;
}
.global .align 4 .u32 word = 77;
)";

class Mock : public testing::Test {
protected:
  static void SetUpTestSuite() {
    // Further runs of this program, with other settings, are tests of their own.
    setenv("LLMC_MOCK_CUDA", "sm=80,memory=64M,seed=3", 0);
    library = dlopen(LLMC_MOCK_CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(library) << dlerror();
  }
  void SetUp() override { ASSERT_EQ(call<CUresult>("cuInit", 0u), CUDA_SUCCESS); }

  static void *address(const char *name) {
    using Get = CUresult (*)(const char *, void **, int, uint64_t, int *);
    static auto get = reinterpret_cast<Get>(dlsym(library, "cuGetProcAddress_v2"));
    void *out = nullptr;
    int status = -1;
    EXPECT_EQ(get(name, &out, 12000, 0, &status), CUDA_SUCCESS) << name;
    return out;
  }
  template <class R, class... Args> static R call(const char *name, Args... args) {
    return reinterpret_cast<R (*)(Args...)>(address(name))(args...);
  }
  template <class... Args> static void ok(const char *name, Args... args) {
    EXPECT_EQ(call<CUresult>(name, args...), CUDA_SUCCESS) << name;
  }
  CUfunction function() {
    CUmodule module = nullptr;
    CUfunction f = nullptr;
    ok("cuModuleLoadData", &module, static_cast<const void *>(text));
    ok("cuModuleGetFunction", &f, module, "scale");
    return f;
  }
  CUdeviceptr upload(const std::vector<float> &x) {
    CUdeviceptr p = 0;
    ok("cuMemAlloc", &p, x.size() * 4);
    ok("cuMemcpyHtoD", p, static_cast<const void *>(x.data()), x.size() * 4);
    return p;
  }
  std::vector<float> download(CUdeviceptr p, size_t n) {
    std::vector<float> x(n);
    ok("cuMemcpyDtoH", static_cast<void *>(x.data()), p, n * 4);
    return x;
  }
  static void *library;
};
void *Mock::library = nullptr;
} // namespace

TEST_F(Mock, Device) {
  int n = 0, major = 0, minor = 0;
  CUdevice device = -1;
  CUcontext context = nullptr;
  ok("cuDeviceGetCount", &n);
  ok("cuDeviceGet", &device, 0);
  ok("cuDeviceGetAttribute", &major, 75, device);
  ok("cuDeviceGetAttribute", &minor, 76, device);
  EXPECT_EQ(n * 100 + major * 10 + minor, 180);
  ok("cuDevicePrimaryCtxRetain", &context, device);
  ok("cuCtxSetCurrent", context);
  size_t free = 0, total = 0;
  ok("cuMemGetInfo", &free, &total);
  EXPECT_EQ(total, 64u << 20);
  const char *name = nullptr;
  ok("cuGetErrorName", CUDA_ERROR_ILLEGAL_ADDRESS, &name);
  EXPECT_STREQ(name, "CUDA_ERROR_ILLEGAL_ADDRESS");
  CUdeviceptr p = 0;
  EXPECT_EQ(call<CUresult>("cuMemAlloc", &p, size_t(65) << 20), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(Mock, LaunchesOnAStream) {
  CUfunction f = function();
  CUdeviceptr p = upload(std::vector<float>(100, 2));
  CUstream stream = nullptr;
  CUevent from = nullptr, to = nullptr;
  ok("cuStreamCreate", &stream, 1u);
  ok("cuEventCreate", &from, 0u);
  ok("cuEventCreate", &to, 0u);
  float factor = 1.5f;
  unsigned n = 100;
  void *params[] = {&p, &factor, &n};
  ok("cuEventRecord", from, stream);
  ok("cuLaunchKernel", f, 4u, 1u, 1u, 32u, 1u, 1u, 0u, stream, params,
     static_cast<void **>(nullptr));
  CUlaunchAttribute attribute = {};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC;
  attribute.value.number = 1;
  CUlaunchConfig c = {4, 1, 1, 25, 1, 1, 0, stream, &attribute, 1};
  ok("cuLaunchKernelEx", static_cast<const CUlaunchConfig *>(&c), f, static_cast<void **>(params),
     static_cast<void **>(nullptr));
  ok("cuEventRecord", to, stream);
  ok("cuStreamSynchronize", stream);
  float ms = -1;
  ok("cuEventElapsedTime", &ms, from, to);
  EXPECT_GE(ms, 0);
  EXPECT_EQ(download(p, 100), std::vector<float>(100, 4.5f));
}

TEST_F(Mock, Graph) {
  CUfunction f = function();
  std::vector<float> host(64, 3), back(64);
  CUdeviceptr p = upload(std::vector<float>(64, 0));
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUgraphNode in = nullptr, first = nullptr, second = nullptr, out = nullptr;
  CUstream none = nullptr;
  CUcontext context = nullptr;
  ok("cuGraphCreate", &graph, 0u);
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = host.data();
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = p;
  copy.WidthInBytes = 256;
  copy.Height = copy.Depth = 1;
  using Nodes = const CUgraphNode *;
  ok("cuGraphAddMemcpyNode", &in, graph, Nodes(nullptr), size_t(0), &copy, context);
  float factor = 2;
  unsigned n = 64;
  void *params[] = {&p, &factor, &n};
  CUDA_KERNEL_NODE_PARAMS kernel = {f, 2, 1, 1, 32, 1, 1, 0, params, nullptr, nullptr, nullptr};
  ok("cuGraphAddKernelNode", &first, graph, Nodes(&in), size_t(1), &kernel);
  ok("cuGraphAddKernelNode", &second, graph, Nodes(nullptr), size_t(0), &kernel);
  CUgraphEdgeData edge = {1, 0, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, {}};
  ok("cuGraphAddDependencies", graph, Nodes(&first), Nodes(&second), &edge, size_t(1));
  std::swap(copy.srcMemoryType, copy.dstMemoryType);
  copy.srcDevice = p;
  copy.dstHost = back.data();
  ok("cuGraphAddMemcpyNode", &out, graph, Nodes(&second), size_t(1), &copy, context);
  ok("cuGraphInstantiate", &exec, graph, 0ull);
  ok("cuGraphLaunch", exec, none);
  ok("cuStreamSynchronize", none);
  EXPECT_EQ(back, std::vector<float>(64, 12));
  factor = 10;
  ok("cuGraphExecKernelNodeSetParams", exec, second, &kernel);
  ok("cuGraphLaunch", exec, none);
  ok("cuCtxSynchronize");
  EXPECT_EQ(back, std::vector<float>(64, 60));
}

TEST_F(Mock, Refusals) {
  CUmodule module = nullptr;
  EXPECT_EQ(call<CUresult>("cuModuleLoadData", &module, static_cast<const void *>("garbage")),
            CUDA_ERROR_INVALID_PTX);
  std::string later = text;
  later.replace(later.find("sm_80"), 5, "sm_90");
  EXPECT_EQ(call<CUresult>("cuModuleLoadData", &module, static_cast<const void *>(later.c_str())),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
  char elf[64] = "\x7f"
                 "ELF";
  EXPECT_EQ(call<CUresult>("cuModuleLoadData", &module, static_cast<const void *>(elf)),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
  CUfunction f = function();
  CUdeviceptr p = 0;
  float factor = 2;
  unsigned n = 64;
  void *params[] = {&p, &factor, &n};
  auto launch = [&](unsigned block, unsigned shared) {
    return call<CUresult>("cuLaunchKernel", f, 1u, 1u, 1u, block, 1u, 1u, shared, CUstream(nullptr),
                          static_cast<void **>(params), static_cast<void **>(nullptr));
  };
  EXPECT_EQ(launch(2000, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(32, 50000), CUDA_ERROR_INVALID_VALUE);
  ok("cuFuncSetAttribute", f, int(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES), 60000);
  n = 0;
  EXPECT_EQ(launch(32, 50000), CUDA_SUCCESS);
}

// Last: after it the device is lost, as a real one is.
TEST_F(Mock, ZAnErrorStays) {
  CUfunction f = function();
  CUdeviceptr p = upload(std::vector<float>(10, 2));
  float factor = 2;
  unsigned n = 64;
  void *params[] = {&p, &factor, &n};
  ok("cuLaunchKernel", f, 1u, 1u, 1u, 64u, 1u, 1u, 0u, CUstream(nullptr),
     static_cast<void **>(params), static_cast<void **>(nullptr));
  EXPECT_EQ(call<CUresult>("cuStreamSynchronize", CUstream(nullptr)), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(call<CUresult>("cuMemAlloc", &p, size_t(4)), CUDA_ERROR_ILLEGAL_ADDRESS);
  auto report = reinterpret_cast<const char *(*)()>(dlsym(library, "llmcMockCudaReport"));
  std::string json = report();
  EXPECT_NE(json.find("out of bounds: scale, line 11"), std::string::npos) << json;
  EXPECT_NE(json.find("\"kernels\": {\"scale\": {\"launches\": "), std::string::npos) << json;
}
