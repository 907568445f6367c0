#include "symbind/graph/define.h"

#include <utility>

namespace symbind {

OpBase::OpBase(std::string name) {
  def_.name = std::move(name);
  set_inputs({"data"});
  set_aux({});
  set_outputs({"output"});
  def_.infer_shape = [](const void*, Shapes& s) { same_shape(s); };
  def_.infer_type = [](const void*, Types& t) { same_type(t); };
}

void OpBase::set_inputs(Names names) {
  def_.input_count = [count = names.size()](const void*) { return count; };
  def_.inputs = [names = std::move(names)](const void*) { return names; };
}

void OpBase::set_aux(Names names) {
  def_.aux_count = [count = names.size()](const void*) { return count; };
  def_.aux = [names = std::move(names)](const void*) { return names; };
}

void OpBase::set_outputs(const Names& names) {
  def_.outputs = [names](const void*) { return names; };
  def_.output_count = [count = names.size()](const void*) { return count; };
  def_.output_name = [names](const void*, size_t index) { return names.at(index); };
  make_all_visible();
}

void OpBase::make_all_visible() {
  def_.visible_outputs = [count = def_.output_count](const void* p) { return static_cast<int>(count(p)); };
}

}  // namespace symbind
