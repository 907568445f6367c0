#include "symbind/ops/linalg_product.h"

#include "symbind/backend/cuda/linalg_blas.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/visit_types.h"

namespace symbind::cuda_backend {
namespace {

// `second` is the input that is b; C, if there is one, is copied to the output and added to.
std::unique_ptr<Kernel> build_product(const NodeView& node, const MatrixProduct& product, size_t second, bool adds) {
  CudaDevice& device = CudaDevice::of(node.context);
  return visit_types<float, double>(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node, [=, &device, where = node.where(), bytes = node.outputs[0].bytes()](const Args& args) {
      const cudaStream_t stream = stream_of(args);
      if (adds)
        device.check(cudaMemcpyAsync(args.outputs[0], args.inputs[2], bytes, cudaMemcpyDeviceToDevice, stream),
                     "copying C");
      queue_product<T>(blas_handle(device, stream), product, args.in<T>(0), args.in<T>(second), args.out<T>(), where);
    });
  });
}

std::unique_ptr<Kernel> build_gemm(const NodeView& node) {
  return build_product(node, gemm_product<LinalgGemm>(node), 1, true);
}
std::unique_ptr<Kernel> build_gemm2(const NodeView& node) {
  return build_product(node, gemm_product<LinalgGemm2>(node), 1, false);
}
std::unique_ptr<Kernel> build_syrk(const NodeView& node) { return build_product(node, syrk_product(node), 0, false); }

// The product with a copy of the triangle that is zero outside of it.
std::unique_ptr<Kernel> build_trmm(const NodeView& node) {
  const auto p = node.as<LinalgTrmm>();
  const MatricesOf a = matrices_of(node.inputs[0].shape), b = matrices_of(node.inputs[1].shape);
  const MatrixProduct product{.a = p.rightside ? b : a,
                              .b = p.rightside ? a : b,
                              .out = b,
                              .transpose_a = !p.rightside && p.transpose,
                              .transpose_b = p.rightside && p.transpose,
                              .alpha = p.alpha};
  CudaDevice& device = CudaDevice::of(node.context);
  return visit_types<float, double>(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node,
                     [=, &device, where = node.where()](const Args& args) {
                       const cudaStream_t stream = stream_of(args);
                       T* const triangle = static_cast<T*>(args.scratch);
                       queue_triangle<T>(stream, args.in<T>(0), triangle, a.rows, a.outer, p.lower);
                       queue_product<T>(blas_handle(device, stream), product, p.rightside ? args.in<T>(1) : triangle,
                                        p.rightside ? triangle : args.in<T>(1), args.out<T>(), where);
                     },
                     {.scratch_bytes = node.inputs[0].bytes()});
  });
}

std::unique_ptr<Kernel> build_trsm(const NodeView& node) {
  const auto p = node.as<LinalgTrsm>();
  const MatricesOf b = matrices_of(node.inputs[1].shape);
  CudaDevice& device = CudaDevice::of(node.context);
  return visit_types<float, double>(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(
        node,
        [=, &device, where = node.where(), bytes = node.outputs[0].bytes()](const Args& args) {
          const cudaStream_t stream = stream_of(args);
          device.check(cudaMemcpyAsync(args.outputs[0], args.inputs[1], bytes, cudaMemcpyDeviceToDevice, stream),
                       "copying B");
          queue_solve<T>(blas_handle(device, stream), stream, p, b, args.in<T>(0), args.out<T>(), args.scratch, where);
        },
        {.scratch_bytes = address_bytes(b.outer)});
  });
}

template <class P>
void add_to(ImplementationTable& table, std::unique_ptr<Kernel> (*build)(const NodeView&),
            std::string (*refuse)(const NodeView&) = refuse_linalg) {
  table.add<P>({.name = "cublas", .refuse = refuse, .build = build, .tier = Tier::library});
}

}  // namespace

void add_linalg_product(ImplementationTable& table) {
  add_to<LinalgGemm>(table, build_gemm, refuse_linalg_product);
  add_to<LinalgGemm2>(table, build_gemm2, refuse_linalg_product);
  add_to<LinalgSyrk>(table, build_syrk, refuse_linalg_product);
  add_to<LinalgTrmm>(table, build_trmm);
  add_to<LinalgTrsm>(table, build_trsm);
}

}  // namespace symbind::cuda_backend
