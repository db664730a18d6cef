"""What TensorBoard shows of a report. The only room that imports tensorboard."""
