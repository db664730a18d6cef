"""The work models, one file per family. Each exports ``MODELS``; `torchroof.work.standard` joins them."""
