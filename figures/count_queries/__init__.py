"""Figures of Sadeghi, Asoodeh and Calmon, mechanisms for count queries."""
