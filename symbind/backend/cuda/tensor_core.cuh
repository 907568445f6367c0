// The instructions for products on tensor cores: asynchronous copies to shared memory, loads of matrices from there,
// and products of a warp. From compute capability 8.0 on.
#pragma once

#include <cstdint>
#include <type_traits>

#include "symbind/core/dtype.h"

namespace symbind::cuda_backend {

namespace tensor_core {

__device__ inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}
// Copies 16 bytes to shared memory asynchronously; zeros if they are not inside the array, which is then not read.
__device__ inline void copy_chunk(uint32_t to, const void* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0) : "memory");
}
// The same with 4 bytes.
__device__ inline void copy_word(uint32_t to, const void* from, bool inside) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(inside ? 4 : 0) : "memory");
}
// The copies since the last call are a group.
__device__ inline void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Returns when all but the last `left` groups of this thread's copies have arrived.
template <int left>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
}

// 4 bytes, and 16, of shared memory.
__device__ inline uint32_t load_word(uint32_t address) {
  uint32_t word;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
  return word;
}
__device__ inline uint4 load_chunk(uint32_t address) {
  uint4 words;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "r"(address)
               : "memory");
  return words;
}
// Four matrices of 8 rows of 16 bytes, whose rows are at the addresses of 8 lanes each: a lane gets four bytes of each.
__device__ inline void load_matrices(uint32_t (&to)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}
// Four, or two, such matrices, each transposed.
__device__ inline void load_transposed(uint32_t (&to)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}
__device__ inline void load_transposed(uint32_t (&to)[2], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
               : "=r"(to[0]), "=r"(to[1])
               : "r"(address)
               : "memory");
}

// TF32 numbers have 10 bits of mantissa; tensor cores ignore the others.
__device__ inline float nearest_tf32(float value) {
  uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return __uint_as_float(bits);
}
// Approximates rounding in one instruction instead of three: adds 0.35 to 0.7, on average about a half, of the last bit
// that tensor cores use. After they ignore the others, numbers that TF32 represents are as they were, and so are
// infinity and NaN.
__device__ inline uint32_t to_be_truncated(uint32_t bits) {
  return __float_as_uint(__uint_as_float(bits) * (1.0f + 0.7f / 2048));
}

// sums = a · b, plus sums unless `first`: 16 rows by 8 columns, a depth of 32 bytes.
template <class T, bool first>
__device__ void add_product(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  const float c0 = first ? 0.0f : sums[0], c1 = first ? 0.0f : sums[1];
  const float c2 = first ? 0.0f : sums[2], c3 = first ? 0.0f : sums[3];
  if constexpr (std::is_same_v<T, float16>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%10,%11,%12,%13};"
        : "=f"(sums[0]), "=f"(sums[1]), "=f"(sums[2]), "=f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c0), "f"(c1), "f"(c2), "f"(c3));
  else if constexpr (std::is_same_v<T, bfloat16>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%10,%11,%12,%13};"
        : "=f"(sums[0]), "=f"(sums[1]), "=f"(sums[2]), "=f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c0), "f"(c1), "f"(c2), "f"(c3));
  else
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%10,%11,%12,%13};"
        : "=f"(sums[0]), "=f"(sums[1]), "=f"(sums[2]), "=f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c0), "f"(c1), "f"(c2), "f"(c3));
}

}  // namespace tensor_core

}  // namespace symbind::cuda_backend
