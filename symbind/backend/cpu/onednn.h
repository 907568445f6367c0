// Where oneDNN's implementations join those of the CPU: backend/onednn defines this, its twin no_onednn adds nothing.
#pragma once

namespace symbind {

class ImplementationTable;

// To be called before the plain implementations are added: the first that accepts a node is taken.
void add_onednn(ImplementationTable& table);

}  // namespace symbind
