// An operator of a user's own, on arrays of the host: its result is twice its input.
#pragma once

#include <memory>
#include <vector>

#include "symbind/exec/arithmetic.h"
#include "symbind/ops/custom.h"

namespace symbind::testing {

class Doubled : public CustomOp {
 public:
  using Arrays = std::vector<NDArray>;
  void forward(bool, const std::vector<OpReq>& req, const Arrays& in, const Arrays& out, const Arrays&) override {
    assign(out[0], req[0], 2 * in[0]);
  }
  void backward(const std::vector<OpReq>& req, const Arrays& out_grad, const Arrays&, const Arrays&,
                const Arrays& in_grad, const Arrays&) override {
    assign(in_grad[0], req[0], 2 * out_grad[0]);
  }
};

class DoubledProp : public CustomOpProp {
 public:
  std::shared_ptr<CustomOp> create_operator(Context, const std::vector<Shape>&,
                                            const std::vector<DType>&) const override {
    return std::make_shared<Doubled>();
  }
};

}  // namespace symbind::testing
