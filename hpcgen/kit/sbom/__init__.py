"""Bills of materials of a lock: components, and their spellings CycloneDX and SPDX."""
