// Where oneDNN's implementations join those of the CPU: backend/onednn defines this, its twin no_onednn adds nothing.
#pragma once

namespace symbind {

class ImplementationTable;

void add_onednn(ImplementationTable& table);

}  // namespace symbind
