#include "symbind/ops/leaky_relu.h"

#include "symbind/graph/define.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

template <class P>
Op<P>& fields(Op<P>& op) {
  return op
      .param(&LeakyReLU::act_type, "act_type",
             "the function for negative x: 'leaky': slope·x; 'prelu': gamma·x with a learned gamma for each channel, a "
             "second input; 'rrelu': x times a slope drawn from [lower_bound, upper_bound] in training and their mean "
             "otherwise; 'elu': slope·(exp(x) - 1); 'selu': scaled elu with fixed constants; 'gelu': x·Φ(x) for all x, "
             "with the distribution function Φ of the normal distribution",
             one_of(leaky_type::all))
      .param(&LeakyReLU::slope, "slope", "slope of 'leaky' and factor of 'elu'")
      .param(&LeakyReLU::lower_bound, "lower_bound", "smallest slope of 'rrelu'")
      .param(&LeakyReLU::upper_bound, "upper_bound", "largest slope of 'rrelu'")
      .check([](P& p) {
        require(p.act_type != "rrelu" || p.lower_bound <= p.upper_bound,
                "lower_bound must not be above upper_bound: ", p.lower_bound, ", ", p.upper_bound);
      });
}

OpDef define(Op<LeakyReLU> op) {
  return fields(op)
      .memory_bound()
      .precision(Precision::narrowest)
      .full_precision_if("act_type", {"elu", "selu"})
      .doc(
          "Leaky rectifiers: x for positive x, a smaller function of x for negative x. The output has the shape of "
          "data.")
      .inputs([](const LeakyReLU& p) {
        return p.act_type == "prelu" ? Names{"data", "gamma"} : Names{"data"};
      })
      // rrelu stores the slopes it drew, for the gradient.
      .outputs([](const LeakyReLU& p) {
        return p.act_type == "rrelu" ? Names{"output", "mask"} : Names{"output"};
      })
      .visible_outputs([](const LeakyReLU&) { return 1; })
      .random([](const LeakyReLU& p, bool is_train) { return is_train && p.act_type == "rrelu"; })
      .initialize("gamma", "[\"Constant\", {\"value\": 0.25}]")
      .infer_shape([](const LeakyReLU& p, Shapes& s) {
        auto data = s["data"];
        data.meet(s.output(0));
        if (p.act_type == "rrelu") s.output(1).meet(data.get());
        if (p.act_type != "prelu" || !data.rank_known()) return;
        auto gamma = s["gamma"];
        // One slope for all, or one for each channel.
        if (gamma.rank() == 1 && gamma[0] == 1) return;
        gamma.meet({data[data.rank() > 1 ? 1 : 0]});
      })
      .infer_type([](const LeakyReLU&, Types& t) { same_floating_type(t); })
      .gradient([](const LeakyReLU& p, Grad& g) {
        std::vector<Symbol> inputs{g.out_grad(), g.input("data")};
        if (p.act_type == "prelu") inputs.push_back(g.input("gamma"));
        if (p.act_type == "rrelu") inputs.push_back(g.output(1));
        const Symbol grads = leaky_relu_grad(inputs, {p});
        g.set("data", grads[0]);
        if (p.act_type == "prelu") g.set("gamma", grads[1]);
      });
}

OpDef define(Op<LeakyReLUGrad> op) {
  return fields(op)
      .inputs([](const LeakyReLUGrad& p) {
        Names names{"out_grad", "data"};
        if (p.act_type == "prelu") names.push_back("gamma");
        if (p.act_type == "rrelu") names.push_back("mask");
        return names;
      })
      .outputs([](const LeakyReLUGrad& p) {
        return p.act_type == "prelu" ? Names{"data_grad", "gamma_grad"} : Names{"data_grad"};
      })
      .infer_shape([](const LeakyReLUGrad& p, Shapes& s) {
        s.output(0).meet(s["data"].get());
        if (p.act_type == "prelu") s.output(1).meet(s["gamma"].get());
      })
      .shapes_of<LeakyReLU>()
      .types_of<LeakyReLU>();
}

}  // namespace

void register_leaky_relu(OpRegistry& registry) {
  add<LeakyReLU>(registry, "LeakyReLU", define);
  add_internal<LeakyReLUGrad>(registry, "_backward_LeakyReLU", define);
}

}  // namespace symbind
