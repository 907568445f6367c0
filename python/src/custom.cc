// Operators written in Python: subclasses of CustomOp and CustomOpProp, registered by name.
#include "symbind/ops/custom.h"

#include "bindings.h"
#include "convert.h"

namespace symbind::python {
namespace {

nb::list texts(const std::vector<OpReq>& reqs) {
  nb::list list;
  for (OpReq req : reqs) list.append(nb::cast(std::string(name_of(req))));
  return list;
}

std::vector<std::vector<int64_t>> public_shapes(const std::vector<Shape>& shapes) {
  std::vector<std::vector<int64_t>> lists;
  for (const Shape& shape : shapes) lists.push_back(shape.to_public());
  return lists;
}

std::vector<Shape> shapes_from(nb::handle value) {
  std::vector<Shape> shapes;
  if (value.is_none()) return shapes;
  for (nb::handle item : value) shapes.push_back(Shape::from_public(dims_from(item)));
  return shapes;
}

std::vector<DType> types_from(nb::handle value) {
  std::vector<DType> types;
  if (value.is_none()) return types;
  for (nb::handle item : value) types.push_back(dtype_from(item));
  return types;
}

// An instance of a Python operator.
class PythonOp final : public CustomOp {
 public:
  explicit PythonOp(nb::object op) : op_(std::move(op), KeeperScope::current()) {}
  void forward(bool is_train, const std::vector<OpReq>& req, const std::vector<NDArray>& in_data,
               const std::vector<NDArray>& out_data, const std::vector<NDArray>& aux) override {
    AcquireGil acquire;
    op_.get().attr("forward")(nb::arg("is_train") = is_train, nb::arg("req") = texts(req),
                              nb::arg("in_data") = list_of(in_data), nb::arg("out_data") = list_of(out_data),
                              nb::arg("aux") = list_of(aux));
  }
  void backward(const std::vector<OpReq>& req, const std::vector<NDArray>& out_grad,
                const std::vector<NDArray>& in_data, const std::vector<NDArray>& out_data,
                const std::vector<NDArray>& in_grad, const std::vector<NDArray>& aux) override {
    AcquireGil acquire;
    op_.get().attr("backward")(nb::arg("req") = texts(req), nb::arg("out_grad") = list_of(out_grad),
                               nb::arg("in_data") = list_of(in_data), nb::arg("out_data") = list_of(out_data),
                               nb::arg("in_grad") = list_of(in_grad), nb::arg("aux") = list_of(aux));
  }

 private:
  Held op_;
};

// A Python object that defines an operator.
class PythonProp final : public CustomOpProp {
 public:
  explicit PythonProp(nb::object prop)
      : CustomOpProp(nb::cast<bool>(nb::getattr(prop, "need_top_grad_", nb::cast(true)))), prop_(std::move(prop)) {}

  Names list_arguments() const override { return names("list_arguments"); }
  Names list_outputs() const override { return names("list_outputs"); }
  Names list_auxiliary_states() const override { return names("list_auxiliary_states"); }

  CustomShapes infer_shape(const std::vector<Shape>& in_shapes) const override {
    AcquireGil acquire;
    const nb::object answer = prop_.get().attr("infer_shape")(nb::cast(public_shapes(in_shapes)));
    const auto parts = parts_of(answer, "infer_shape");
    CustomShapes shapes{shapes_from(parts[0]), shapes_from(parts[1])};
    if (parts.size() > 2) shapes.aux = shapes_from(parts[2]);
    return shapes;
  }
  CustomTypes infer_type(const std::vector<DType>& in_types) const override {
    AcquireGil acquire;
    nb::list given;
    for (DType dtype : in_types) given.append(numpy_type(dtype));
    const auto parts = parts_of(prop_.get().attr("infer_type")(given), "infer_type");
    CustomTypes types{types_from(parts[0]), types_from(parts[1])};
    if (parts.size() > 2) types.aux = types_from(parts[2]);
    return types;
  }
  std::vector<int> declare_backward_dependency(const std::vector<int>& out_grad, const std::vector<int>& in_data,
                                               const std::vector<int>& out_data) const override {
    AcquireGil acquire;
    return nb::cast<std::vector<int>>(
        nb::object(prop_.get().attr("declare_backward_dependency")(out_grad, in_data, out_data)));
  }
  std::shared_ptr<CustomOp> create_operator(Context context, const std::vector<Shape>& in_shapes,
                                            const std::vector<DType>& in_types) const override {
    AcquireGil acquire;
    nb::list types;
    for (DType dtype : in_types) types.append(numpy_type(dtype));
    return std::make_shared<PythonOp>(prop_.get().attr("create_operator")(context, public_shapes(in_shapes), types));
  }

 private:
  Names names(const char* method) const {
    AcquireGil acquire;
    return names_from(nb::object(prop_.get().attr(method)()));
  }
  std::vector<nb::object> parts_of(const nb::object& answer, const char* method) const {
    std::vector<nb::object> parts;
    for (nb::handle part : answer) parts.push_back(nb::borrow(part));
    if (parts.size() != 2 && parts.size() != 3)
      throw ValueError(
          join(method, " must return two or three lists (inputs, outputs, auxiliary states), not ", parts.size()));
    return parts;
  }

  Held prop_;
};

}  // namespace

void bind_custom(nb::module_& m) {
  m.def(
      "_register_custom_op",
      [](const std::string& name, nb::object factory) {
        register_custom_op(name, [held = Held(std::move(factory))](const Attributes& arguments) {
          AcquireGil acquire;
          return std::make_shared<PythonProp>(held.get()(**nb::cast<nb::dict>(nb::cast(arguments))));
        });
      },
      nb::arg("name"), nb::arg("factory"));
}

}  // namespace symbind::python
