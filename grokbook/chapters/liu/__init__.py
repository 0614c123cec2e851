"""Liu et al. (2022): an effective theory of representation learning."""
