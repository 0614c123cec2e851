"""The four-shape sum task of Gu et al. (2025), section 6.3: does a deep network grok, and on what?"""
