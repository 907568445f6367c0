#include "symbind/ops/sort.h"

#include "symbind/core/axis_view.h"
#include "symbind/graph/define.h"

namespace symbind {

AxisView sorted_rows(const std::optional<int64_t>& given, const Shape& data, std::string_view who) {
  if (!given) return {1, data.size(), 1};
  return view_along(data, data.axis(*given, who));
}

namespace {

constexpr const char* axis_doc = "axis to sort along; negative ones count from the end; None: the flattened array";

// The first `k` along the axis; 0: all.
Shape first_of(const std::optional<int64_t>& axis, int64_t k, const Shape& data, const std::string& where) {
  const int64_t length = sorted_rows(axis, data, where).length;
  require(k <= length, where, " k must not be above the ", length, " elements there are: ", k);
  const int64_t count = k <= 0 ? length : k;
  return axis ? data.with(data.axis(*axis, where), count) : Shape{count};
}

void type_follows_data(Types& t) {
  t["data"].meet(t.output(0).get());
  t.output(0).meet(t["data"].get());
}

OpDef define(Op<Sort> op) {
  return op.doc("The elements sorted along an axis; the result has the shape of data, or one axis when axis is None.")
      .param(&Sort::axis, "axis", axis_doc)
      .param(&Sort::is_ascend, "is_ascend", "sort in ascending order; False: in descending order")
      .outputs({"output0", "output1"})  // the sorted elements, and their indices
      .visible_outputs([](const Sort&) { return 1; })
      .infer_shape([](const Sort& p, Shapes& s) {
        if (!s["data"].known()) return;
        const Shape shape = first_of(p.axis, 0, s["data"], s.where());
        s.output(0).meet(shape);
        s.output(1).meet(shape);
      })
      .infer_type([](const Sort&, Types& t) {
        type_follows_data(t);
        t.output(1).meet(DType::int64);
      })
      .gradient([](const Sort& p, Grad& g) {
        g.set("data", sort_grad(g.out_grad(0), g.output(1), g.input("data"), {.axis = p.axis}));
      });
}

OpDef define(Op<Argsort> op) {
  return op
      .doc("The indices that sort data along an axis; the result has the shape of data, or one axis when axis is None.")
      .precision(Precision::full)
      .param(&Argsort::axis, "axis", axis_doc)
      .param(&Argsort::is_ascend, "is_ascend", "sort in ascending order; False: in descending order")
      .param(&Argsort::dtype, "dtype", "element type of the result")
      .infer_shape([](const Argsort& p, Shapes& s) {
        if (s["data"].known()) s.output().meet(first_of(p.axis, 0, s["data"], s.where()));
      })
      .infer_type([](const Argsort& p, Types& t) { t.output().meet(p.dtype); });
}

bool returns_values(const TopK& p) { return p.ret_typ == "value" || p.ret_typ == "both"; }

OpDef define(Op<TopK> op) {
  return op
      .doc(
          "The k largest elements along an axis, in descending order: their indices, their values, both, or a mask of "
          "data's shape. Except for the mask, the axis has extent k in the result.")
      .precision(Precision::full)
      .param(&TopK::axis, "axis", axis_doc)
      .param(&TopK::k, "k", "number of elements to select; 0 or less: all")
      .param(&TopK::ret_typ, "ret_typ",
             "what to return: 'indices'; 'value'; 'both': two outputs, values and indices; 'mask': 1 at the selected "
             "elements and 0 elsewhere",
             one_of(ret_typ::all))
      .param(&TopK::is_ascend, "is_ascend",
             "select the k smallest elements instead of the k largest, in ascending order")
      .param(&TopK::dtype, "dtype", "element type of the indices")
      .outputs([](const TopK& p) {
        return returns_values(p) ? Names{"output0", "output1"} : Names{"output"};
      })
      .visible_outputs([](const TopK& p) { return p.ret_typ == "both" ? 2 : 1; })
      .infer_shape([](const TopK& p, Shapes& s) {
        if (!s["data"].known()) return;
        const Shape shape = first_of(p.axis, p.k, s["data"], s.where());
        s.output(0).meet(p.ret_typ == "mask" ? s["data"].get() : shape);
        if (returns_values(p)) s.output(1).meet(shape);
      })
      .infer_type([](const TopK& p, Types& t) {
        if (p.ret_typ == "indices")
          t.output(0).meet(p.dtype);
        else
          type_follows_data(t);
        if (returns_values(p)) t.output(1).meet(p.dtype);
      })
      .gradient([](const TopK& p, Grad& g) {
        if (!returns_values(p)) return;
        g.set("data", sort_grad(g.out_grad(0), g.output(1), g.input("data"), {.axis = p.axis}));
      });
}

OpDef define(Op<SortGrad> op) {
  return op.param(&SortGrad::axis, "axis", axis_doc)
      .inputs({"out_grad", "indices", "data"})
      .shape_only({"data"})
      .infer_shape([](const SortGrad& p, Shapes& s) {
        auto data = s["data"], indices = s["indices"];
        indices.meet(s["out_grad"]);
        s.output().meet(data.get());
        if (!data.known() || !indices.known()) return;
        const int along = p.axis ? data.get().axis(*p.axis, s.where()) : 0;
        require(!p.axis || indices.rank() == data.rank(), s.where(),
                " indices and data must have as many axes: indices ", indices.get(), ", data ", data.get());
        indices.meet(first_of(p.axis, indices[along], data, s.where()));
      })
      .infer_type([](const SortGrad&, Types& t) { t.output().meet(t["out_grad"].get()); });
}

}  // namespace

void register_sort(OpRegistry& registry) {
  add<Sort>(registry, "sort", define);
  add<Argsort>(registry, "argsort", define);
  add<TopK>(registry, "topk", define);
  add_internal<SortGrad>(registry, "_backward_topk", define);
}

}  // namespace symbind
