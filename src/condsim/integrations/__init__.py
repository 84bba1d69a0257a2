"""condsim in other libraries, one module for each."""
