"""OpenCV: frames of 4K video: colour, blur, sharpen, half the size: images of 8 to 25 MiB, made anew
in each frame.   opencv_frames.py --steps 20"""
import cv2
import numpy as np
from meter import Meter, arguments

a = arguments(steps=15, width=3840, height=2160)
cv2.setNumThreads(a.threads)
frame = np.random.default_rng(0).integers(0, 255, (a.height, a.width, 3), dtype=np.uint8)
m = Meter("opencv", a)
for _ in m:
    grey = cv2.cvtColor(frame, cv2.COLOR_BGR2GRAY)
    soft = cv2.blur(frame, (5, 5))
    sharp = cv2.addWeighted(frame, 1.5, soft, -0.5, 0)
    edges = cv2.Sobel(grey, cv2.CV_16S, 1, 0)
    small = cv2.resize(sharp, (a.width // 2, a.height // 2), interpolation=cv2.INTER_AREA)
    del grey, soft, sharp, edges, small
m.report()
