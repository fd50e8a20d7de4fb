"""Pictures of a plan or a run: `draw` as SVG with its `boxes`, `trace` for Perfetto."""
