"""The ROS side: everything that imports rclpy. It holds no mathematics."""
