// The operator families of this folder, one function each.
#pragma once

namespace symbind {
class ImplementationTable;
}

namespace symbind::onednn {

void add_conv(ImplementationTable& table);
void add_pool(ImplementationTable& table);
void add_matmul(ImplementationTable& table);
void add_softmax(ImplementationTable& table);

}  // namespace symbind::onednn
