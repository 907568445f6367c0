#include "symbind/graph/grad_req.h"

#include "symbind/core/error.h"

namespace symbind {

GradReq grad_req_from_name(std::string_view name) {
  if (name == "write") return GradReq::write;
  if (name == "add") return GradReq::add;
  if (name == "null") return GradReq::null;
  fail("'", name, "' is not a grad_req: expected write, add, null or parameters");
}

}  // namespace symbind
