"""Drop-in accountants for other libraries, one module per library."""
