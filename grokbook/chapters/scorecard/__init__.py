"""The pages that put all chapters side by side: front page, scorecard, gallery."""
