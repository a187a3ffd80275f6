"""What any program needs: registries, files, stores, typed values. Nothing of radiology, nothing public."""
