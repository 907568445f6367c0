// Where oneDNN's implementations join those of the CPU: backend/onednn defines this; the stub in no_onednn adds none.
#pragma once

namespace symbind {

class ImplementationTable;

void add_onednn(ImplementationTable& table);

}  // namespace symbind
