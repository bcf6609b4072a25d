% Octave: each step filters an image, transforms it, and takes statistics of what comes out. Each
% prints a line, which ends it for faultstat (--step-regex ^step).
%   octave-cli --norc --quiet --no-history bench/programs/arrays.m
rand("seed", 0);
picture = rand(1500, 2000);
window = ones(5) / 25;
printf("step begins\n"); fflush(stdout);
for i = 1:12
    smooth = conv2(picture, window, "same");
    edges = sqrt(diff(smooth(:, 1:end - 1), 1, 1) .^ 2 + diff(smooth(1:end - 1, :), 1, 2)(:, 1:end) .^ 2);
    bright = smooth .* (smooth > mean(smooth(:)));
    spectrum = abs(fft2(bright - picture));
    printf("step %d %g\n", i, sum(edges(:)) + max(spectrum(:)) + median(bright(:))); fflush(stdout);
end
