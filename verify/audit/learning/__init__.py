"""From outputs to one event: features of outputs, and what training runs choose among them."""
