"""Accountants in place of those of other libraries, by the library: `dpassay.integrations`."""
