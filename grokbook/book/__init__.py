"""From notebooks to pages: parameters, execution, rendering, sliders."""
